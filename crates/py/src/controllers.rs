//! A controller that is a Python class: `python:FILE` or `python:FILE:Class`, in world `sim`.
//!
//! `headway.controllers` loads the file. Here each event becomes a call of the class's method, and
//! the object's attributes after it say what the sender may do.

use std::panic::resume_unwind;
use std::sync::Arc;

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Loaded, Need, Param, Rate,
    Recovery, Registry, Rto, Scheme, SchemeError, Setup, Time, Values,
};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::schemes::registry;

/// The parameter has no name: it is everything after the scheme's name.
const FILE: Param = Param {
    name: "",
    help: "the file, and the class where the file has several controllers",
    kind: Kind::Loaded {
        what: "FILE or FILE:Class",
        default: None,
        load: |text| Python::attach(|py| load(py, text).map_err(|error| line_of(py, &error))),
    },
};

static SCHEMES: [Scheme; 1] = [Scheme {
    name: "python",
    family: Family::Loss,
    summary: "a Python class of the user's own",
    source: "the user's file",
    deviations: &[],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[FILE],
    build: |setup, values| Box::new(Controller::new(setup, values)),
    receiver: None,
    router: None,
}];

/// Every scheme that the simulator knows.
pub(crate) fn with_python() -> Registry {
    let mut all = registry();
    all.add(&SCHEMES);
    all
}

fn load(py: Python<'_>, text: &str) -> PyResult<Loaded> {
    let module = py.import("headway.controllers")?;
    let loaded = module.call_method1("load", (text,))?;
    Ok(Loaded {
        id: loaded.getattr("id")?.extract()?,
        content: Arc::new(loaded.getattr("controller")?.unbind()),
    })
}

/// The error in one line: the file, the line, and the exception.
fn line_of(py: Python<'_>, error: &PyErr) -> String {
    // The line number is in the traceback.
    let value = error.clone_ref(py).into_value(py);
    let module = py.import("headway.controllers");
    let line = module.and_then(|m| m.call_method1("error_line", (value,))?.extract());
    line.unwrap_or_else(|_| error.to_string())
}

/// The properties of its flow that a controller gets.
#[pyclass(frozen, get_all, name = "Setup", module = "headway._native")]
struct PySetup {
    mss: u64,
    initial_cwnd: u64,
    start_s: f64,
    seed: u64,
}

#[pyclass(frozen, get_all, name = "Feedback", module = "headway._native")]
struct PyFeedback {
    now_s: f64,
    acked_bytes: u64,
    lost_bytes: u64,
    rtt_ms: Option<f64>,
    smoothed_rtt_ms: f64,
    min_rtt_ms: f64,
    delivery_mbps: Option<f64>,
    in_flight_bytes: u64,
    prior_in_flight_bytes: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
    cwnd_limited: bool,
    app_limited: bool,
    recovery: &'static str,
    congestion: bool,
    undo: bool,
}

impl From<&Feedback<'_>> for PyFeedback {
    fn from(f: &Feedback<'_>) -> PyFeedback {
        PyFeedback {
            now_s: f.now.as_secs_f64(),
            acked_bytes: f.acked_bytes.get(),
            lost_bytes: f.lost_bytes.get(),
            rtt_ms: f.rtt.map(Duration::as_millis_f64),
            smoothed_rtt_ms: f.rtt_stats.smoothed.as_millis_f64(),
            min_rtt_ms: f.rtt_stats.min.as_millis_f64(),
            delivery_mbps: f.rate.map(|sample| sample.delivery_rate().as_mbps()),
            in_flight_bytes: f.in_flight.get(),
            prior_in_flight_bytes: f.prior_in_flight.get(),
            sent_bytes: f.counters.sent.get(),
            delivered_bytes: f.counters.delivered.get(),
            cwnd_limited: f.cwnd_limited,
            app_limited: f.app_limited,
            recovery: match f.recovery {
                Recovery::Open => "open",
                Recovery::Disorder => "disorder",
                Recovery::Cwr => "cwr",
                Recovery::Recovery => "recovery",
                Recovery::Loss => "loss",
            },
            congestion: f.congestion.is_some(),
            undo: f.undo,
        }
    }
}

#[pyclass(frozen, get_all, name = "Rto", module = "headway._native")]
struct PyRto {
    now_s: f64,
    prior_in_flight_bytes: u64,
    consecutive: u32,
}

/// One flow's object, and what it allows the sender.
#[derive(Debug)]
struct Controller {
    /// The object, or why its class could not make it.
    object: Result<Py<PyAny>, String>,
    mss: Bytes,
    control: Control,
    next_timer: Time,
    owns_recovery: bool,
    has: Has,
    /// Whether a class without an `on_rto` may send only one packet, from a timeout until something
    /// is acknowledged.
    timed_out: bool,
}

/// Which methods the class has besides `on_feedback`.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    on_rto: bool,
    on_idle: bool,
    on_timer: bool,
}

impl Controller {
    /// A larger window, in bytes, counts as this.
    const MOST: f64 = 1e12;

    fn new(setup: &Setup, values: &Values) -> Controller {
        let mut controller = Controller {
            object: Err(String::new()),
            mss: setup.mss,
            control: Control::window(setup.initial_cwnd),
            next_timer: Time::NEVER,
            owns_recovery: false,
            has: Has::default(),
            timed_out: false,
        };
        Python::attach(|py| {
            let class = values.loaded::<Py<PyAny>>(&FILE);
            let made = controller.make(class.bind(py), setup);
            controller.object = made.map_err(|error| line_of(py, &error));
        });
        controller
    }

    fn make(&mut self, class: &Bound<'_, PyAny>, setup: &Setup) -> PyResult<Py<PyAny>> {
        let object = class.call1((PySetup {
            mss: setup.mss.get(),
            initial_cwnd: setup.initial_cwnd.get(),
            start_s: setup.start.as_secs_f64(),
            seed: setup.seed,
        },))?;
        self.has = Has {
            on_rto: object.hasattr("on_rto")?,
            on_idle: object.hasattr("on_idle")?,
            on_timer: object.hasattr("on_timer")?,
        };
        let owns = object.getattr_opt("owns_recovery")?;
        self.owns_recovery = owns.map_or(Ok(false), |value| value.is_truthy())?;
        self.read(&object)?;
        Ok(object.unbind())
    }

    /// Reads what the object allows now.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        let cwnd: f64 = match object.getattr_opt(intern!(py, "cwnd"))? {
            Some(cwnd) => cwnd.extract()?,
            None => {
                let why = "there is no self.cwnd; set it to the window in bytes in __init__";
                return Err(PyAttributeError::new_err(why));
            }
        };
        if cwnd.is_nan() {
            return Err(PyValueError::new_err("self.cwnd is nan, must be a number"));
        }
        let cwnd = Bytes::new(cwnd.clamp(0.0, Controller::MOST).round() as u64);
        let pacing = object.getattr_opt(intern!(py, "pacing_mbps"))?;
        let pacing: Option<f64> = pacing.map_or(Ok(None), |value| value.extract())?;
        self.control = Control::window(cwnd.max(self.mss));
        if let Some(mbps) = pacing {
            if !(1e-3..=1e6).contains(&mbps) {
                let why = format!("self.pacing_mbps is {mbps}, must be from 0.001 to 1e6, or None");
                return Err(PyValueError::new_err(why));
            }
            self.control.pacing_rate = Some(Rate::from_mbps(mbps));
        }
        if self.has.on_timer {
            let next = object.getattr_opt(intern!(py, "next_timer_s"))?;
            let next: Option<f64> = next.map_or(Ok(None), |value| value.extract())?;
            self.next_timer = next.map_or(Time::NEVER, |s| {
                Time::ZERO + Duration::from_secs_f64(s.clamp(0.0, 1e6))
            });
        }
        Ok(())
    }

    /// Calls a method and then reads what the object allows. An error of the user's code ends the
    /// run: the batch, which carries it out, reports it.
    fn call<A>(&mut self, name: fn(Python<'_>) -> &Bound<'_, PyString>, arguments: A)
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let failed = Python::attach(|py| {
            let object = match &self.object {
                Ok(object) => object.clone_ref(py).into_bound(py),
                Err(why) => return Some(why.clone()),
            };
            let called = object.call_method1(name(py), arguments);
            let read = called.and_then(|_| self.read(&object));
            read.err().map(|error| line_of(py, &error))
        });
        if let Some(why) = failed {
            resume_unwind(Box::new(SchemeError(why)));
        }
    }
}

impl CongestionControl for Controller {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.timed_out = false;
        self.call(|py| intern!(py, "on_feedback"), (PyFeedback::from(f),));
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if !self.has.on_rto {
            self.timed_out = true;
            return;
        }
        let event = PyRto {
            now_s: rto.now.as_secs_f64(),
            prior_in_flight_bytes: rto.prior_in_flight.get(),
            consecutive: rto.consecutive,
        };
        self.call(|py| intern!(py, "on_rto"), (event,));
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        if self.has.on_idle {
            let event = (now.as_secs_f64(), idle.as_secs_f64());
            self.call(|py| intern!(py, "on_idle"), event);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time) {
        self.call(|py| intern!(py, "on_timer"), (now.as_secs_f64(),));
        if self.next_timer <= now {
            let (next, now) = (self.next_timer.as_secs_f64(), now.as_secs_f64());
            let why = format!(
                "after on_timer at {now} s self.next_timer_s is {next}, must be later, or None"
            );
            resume_unwind(Box::new(SchemeError(why)));
        }
    }

    fn control(&self) -> Control {
        match self.timed_out {
            true => Control::window(self.mss),
            false => self.control,
        }
    }

    fn owns_recovery(&self) -> bool {
        self.owns_recovery
    }
}
