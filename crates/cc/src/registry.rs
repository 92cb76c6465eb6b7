//! What a host knows of a scheme before it runs it: name, needs, parameters, how to build it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{
    Batched, Bytes, CongestionControl, DigestInterval, Duration, Rate, Receiver, Stream, Time,
    suggest,
};

/// A scheme: a controller under its registry name, with the parameters it takes.
#[derive(Debug)]
pub struct Scheme {
    /// The registry name.
    pub name: &'static str,
    /// What kind of controller it is.
    pub family: Family,
    /// One line for people.
    pub summary: &'static str,
    /// The document that it implements.
    pub source: &'static str,
    /// Where it departs from that document, and why: a sentence each.
    pub deviations: &'static [&'static str],
    /// What its host must supply beyond acknowledgements and losses.
    pub needs: &'static [Need],
    /// The parameters it takes.
    pub params: &'static [Param],
    /// Builds the sender's half.
    pub build: fn(&Setup, &Values) -> Box<dyn CongestionControl>,
    /// Builds the receiver's half, for a scheme that has one.
    pub receiver: Option<BuildReceiver>,
    /// What the bottleneck has to be for it; most schemes take any queue.
    pub router: Option<Router>,
}

/// A queue that tells senders what to do: half of the schemes that are [`Family::Explicit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// ABC's accelerate and brake marks.
    Abc,
    /// XCP's feedback, from the link's rate.
    Xcp,
    /// XCP's feedback, from the rate at which the link has lately been able to send.
    XcpWindowed,
}

impl Router {
    /// As scenarios and tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Router::Abc => "abc",
            Router::Xcp => "xcp",
            Router::XcpWindowed => "xcp-w",
        }
    }
}

/// Builds the receiver's half of a scheme for one flow.
pub type BuildReceiver = fn(&Setup, &Values) -> Box<dyn Receiver>;

/// Kinds of controllers, as tables and colours group them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Does not react: a yardstick.
    Fixed,
    /// Reacts to loss.
    Loss,
    /// Reacts to delay.
    Delay,
    /// Keeps a model of the path.
    Model,
    /// Maximises a utility online.
    Utility,
    /// Is told by routers.
    Explicit,
    /// Was trained.
    Learned,
}

impl Family {
    /// In small letters, for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Fixed => "fixed",
            Family::Loss => "loss",
            Family::Delay => "delay",
            Family::Model => "model",
            Family::Utility => "utility",
            Family::Explicit => "explicit",
            Family::Learned => "learned",
        }
    }
}

/// What a scheme may need from its host beyond acknowledgements and losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Each packet's acknowledgement and loss, not digests.
    PerPacket,
    /// Delivery-rate samples.
    RateSample,
    /// Pacing.
    Pacing,
    /// What the controller allows is read anew after every packet that leaves, not only after
    /// feedback and timers: for those that decide in `on_sent`.
    PerSend,
    /// Arrival times by the receiver's clock.
    ReceiverTime,
    /// A half of its own at the receiver.
    Receiver,
    /// The ECN field of each packet echoed.
    EcnEcho,
    /// A header field that routers rewrite.
    Header,
    /// News from inside the network.
    NetworkView,
}

impl Need {
    /// In small letters, for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Need::PerPacket => "per-packet",
            Need::RateSample => "rate-sample",
            Need::Pacing => "pacing",
            Need::PerSend => "per-send",
            Need::ReceiverTime => "receiver-time",
            Need::Receiver => "receiver",
            Need::EcnEcho => "ecn-echo",
            Need::Header => "header",
            Need::NetworkView => "network-view",
        }
    }
}

/// A place where schemes run, and what it can supply.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// Its name: `sim`, `emu`, `kernel`.
    pub name: &'static str,
    /// The needs that it meets.
    pub supplies: &'static [Need],
}

impl World {
    /// The first need of `scheme` that this world cannot meet.
    pub fn lacks(&self, scheme: &Scheme) -> Option<Need> {
        scheme
            .needs
            .iter()
            .copied()
            .find(|n| !self.supplies.contains(n))
    }
}

/// What a controller is told of its flow when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The size of a full packet on the wire, the unit of windows.
    pub mss: Bytes,
    /// The window that a flow begins with (RFC 6928: ten packets).
    pub initial_cwnd: Bytes,
    /// When the flow begins.
    pub start: Time,
    /// Seeds the controller's own [`Stream`]s; differs from flow to flow.
    pub seed: u64,
}

impl Setup {
    /// The usual flow: `mss` on the wire, ten packets to begin with, from time zero on.
    pub const fn new(mss: Bytes, seed: u64) -> Setup {
        Setup {
            mss,
            initial_cwnd: Bytes::new(10 * mss.get()),
            start: Time::ZERO,
            seed,
        }
    }

    /// This flow's stream for the controller's component `name`.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed, name)
    }
}

/// A parameter that a scheme declares.
#[derive(Debug)]
pub struct Param {
    /// As written in `scheme:name=value`.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What may be written, and its default.
    pub kind: Kind,
}

/// What a parameter's value may be. Numbers carry their default and inclusive range.
#[derive(Debug)]
pub enum Kind {
    /// A plain number.
    Number {
        /// Where nothing is written.
        default: f64,
        /// The least allowed.
        min: f64,
        /// The most allowed.
        max: f64,
    },
    /// A whole number.
    Count {
        /// Where nothing is written.
        default: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// A time, written `20ms` or `10s`.
    Time {
        /// Where nothing is written.
        default: Duration,
        /// The least allowed.
        min: Duration,
        /// The most allowed.
        max: Duration,
    },
    /// A rate, written `12Mbps`.
    Rate {
        /// Where nothing is written.
        default: Rate,
        /// The least allowed.
        min: Rate,
        /// The most allowed.
        max: Rate,
    },
    /// One of several words, the first by default.
    Choice(&'static [&'static str]),
    /// Something that is loaded from what is written, such as a model's folder.
    Loaded {
        /// What may be written.
        what: &'static str,
        /// Loaded where nothing is written; `None` where something has to be.
        default: Option<&'static str>,
        /// Loads it; the error is one line.
        load: fn(&str) -> Result<Loaded, String>,
    },
}

/// What a [`Kind::Loaded`] parameter stands for.
#[derive(Clone)]
pub struct Loaded {
    /// Names it in a scheme's canonical spelling: the same for the same content.
    pub id: String,
    /// The thing itself, which its scheme knows the type of.
    pub content: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

#[derive(Clone, Debug)]
enum Value {
    Number(f64),
    Count(u64),
    Time(Duration),
    Rate(Rate),
    Choice(&'static str),
    Loaded(Loaded),
    /// A parameter without a default was not written.
    Missing,
}

impl fmt::Display for Value {
    /// In plain numbers: seconds, and bit/s.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Time(time) => write!(f, "{}s", time.as_secs_f64()),
            Value::Rate(rate) => write!(f, "{}bps", rate.as_bps()),
            Value::Choice(word) => f.write_str(word),
            Value::Loaded(loaded) => f.write_str(&loaded.id),
            Value::Missing => Ok(()),
        }
    }
}

/// A scheme's parameters with their values: those written, defaults for the rest; and how far apart its
/// digests are if it is to have digests.
#[derive(Clone, Debug)]
pub struct Values(Vec<(&'static Param, Value)>, Option<DigestInterval>);

impl Values {
    /// All defaults.
    pub fn defaults(params: &'static [Param]) -> Values {
        let value = |p: &Param| match p.kind {
            Kind::Number { default, .. } => Value::Number(default),
            Kind::Count { default, .. } => Value::Count(default),
            Kind::Time { default, .. } => Value::Time(default),
            Kind::Rate { default, .. } => Value::Rate(default),
            Kind::Choice(words) => Value::Choice(words[0]),
            Kind::Loaded { .. } => Value::Missing,
        };
        Values(params.iter().map(|p| (p, value(p))).collect(), None)
    }

    fn get(&self, param: &Param) -> &Value {
        self.0
            .iter()
            .find(|(p, _)| p.name == param.name)
            .map(|(_, v)| v)
            .unwrap_or_else(|| panic!("parameter {} is not declared by its scheme", param.name))
    }

    /// The value of a [`Kind::Number`] parameter.
    pub fn number(&self, param: &Param) -> f64 {
        match self.get(param) {
            Value::Number(n) => *n,
            other => panic!("parameter {} is {other:?}, not a number", param.name),
        }
    }

    /// The value of a [`Kind::Count`] parameter.
    pub fn count(&self, param: &Param) -> u64 {
        match self.get(param) {
            Value::Count(n) => *n,
            other => panic!("parameter {} is {other:?}, not a whole number", param.name),
        }
    }

    /// The value of a [`Kind::Time`] parameter.
    pub fn time(&self, param: &Param) -> Duration {
        match self.get(param) {
            Value::Time(d) => *d,
            other => panic!("parameter {} is {other:?}, not a time", param.name),
        }
    }

    /// The value of a [`Kind::Rate`] parameter.
    pub fn rate(&self, param: &Param) -> Rate {
        match self.get(param) {
            Value::Rate(r) => *r,
            other => panic!("parameter {} is {other:?}, not a rate", param.name),
        }
    }

    /// The value of a [`Kind::Choice`] parameter.
    pub fn choice(&self, param: &Param) -> &'static str {
        match self.get(param) {
            Value::Choice(w) => w,
            other => panic!("parameter {} is {other:?}, not a choice", param.name),
        }
    }
}

impl Values {
    /// What a [`Kind::Loaded`] parameter stands for.
    ///
    /// # Panics
    /// If it is of another type.
    pub fn loaded<T: Any + Send + Sync>(&self, param: &Param) -> Arc<T> {
        match self.get(param) {
            Value::Loaded(loaded) => Arc::clone(&loaded.content)
                .downcast()
                .unwrap_or_else(|_| panic!("parameter {} is of another type", param.name)),
            other => panic!("parameter {} is {other:?}, not loaded", param.name),
        }
    }

    /// The same with what a [`Kind::Loaded`] parameter stands for.
    pub fn with_loaded(mut self, param: &Param, loaded: Loaded) -> Values {
        if let Some(slot) = self.0.iter_mut().find(|(p, _)| p.name == param.name) {
            slot.1 = Value::Loaded(loaded);
        }
        self
    }
}

/// A scheme with parameter values: what `cubic:hystart=none` stands for.
#[derive(Clone, Debug)]
pub struct Selection {
    /// As it was written; names the row in tables.
    pub spec: String,
    /// The scheme.
    pub scheme: &'static Scheme,
    /// Its parameters.
    pub values: Values,
}

impl Selection {
    /// Builds the sender's half for one flow.
    pub fn build(&self, setup: &Setup) -> Box<dyn CongestionControl> {
        let controller = (self.scheme.build)(setup, &self.values);
        match self.values.1 {
            Some(interval) => Box::new(Batched::new(controller, interval)),
            None => controller,
        }
    }

    /// Builds the receiver's half for one flow, if the scheme has one.
    pub fn build_receiver(&self, setup: &Setup) -> Option<Box<dyn Receiver>> {
        self.scheme.receiver.map(|build| build(setup, &self.values))
    }
}

impl Selection {
    /// Names the trained model that it runs, if it runs one: the same for the same content.
    pub fn model(&self) -> Option<&str> {
        self.values.0.iter().find_map(|(_, value)| match value {
            Value::Loaded(loaded) => Some(loaded.id.as_str()),
            _ => None,
        })
    }

    /// The scheme with every parameter, in one spelling: `copa:delta=0.5`.
    pub fn canonical(&self) -> String {
        let mut spec = self.scheme.name.to_owned();
        for (param, value) in &self.values.0 {
            spec += &format!(":{}={value}", param.name);
        }
        match self.values.1 {
            Some(interval) => format!("{}{spec}:{INTERVAL}={interval}", Registry::BATCHED),
            None => spec,
        }
    }
}

/// How far apart the digests of a `batched-` scheme are.
const INTERVAL: &str = "interval";

/// The schemes that a host knows by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    schemes: Vec<&'static Scheme>,
}

impl Registry {
    /// The schemes of `list`.
    ///
    /// # Panics
    /// If two have one name.
    pub fn new(list: &'static [Scheme]) -> Registry {
        let mut registry = Registry::default();
        registry.add(list);
        registry
    }

    /// Adds the schemes of `list`.
    ///
    /// # Panics
    /// If two have one name.
    pub fn add(&mut self, list: &'static [Scheme]) {
        for scheme in list {
            assert!(
                self.find(scheme.name).is_none(),
                "two schemes are named {}",
                scheme.name
            );
            self.schemes.push(scheme);
        }
    }

    /// Every scheme, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &'static Scheme> + '_ {
        self.schemes.iter().copied()
    }

    /// The scheme of that name.
    pub fn find(&self, name: &str) -> Option<&'static Scheme> {
        self.iter().find(|s| s.name == name)
    }

    /// A scheme that gets [digests](Batched) in the place of each acknowledgement: `batched-cubic:interval=10ms`.
    pub const BATCHED: &str = "batched-";

    /// Reads `batched-name:interval=10ms:key=value`.
    fn select_batched(&self, spec: &str, rest: &str) -> Result<Selection, SchemeError> {
        let refused = |why: String| Err(SchemeError(format!("scheme '{spec}': {why}")));
        if rest.starts_with(Registry::BATCHED) {
            return refused("there are no digests of digests".to_owned());
        }
        let is_interval = |part: &&str| part.split('=').next() == Some(INTERVAL);
        let (intervals, others): (Vec<&str>, Vec<&str>) = rest.split(':').partition(is_interval);
        let within = self.select(&others.join(":"))?;
        if let Some(need) = within
            .scheme
            .needs
            .iter()
            .find(|n| DigestInterval::lacks(**n))
        {
            return refused(format!(
                "it needs {}, which digests do not give",
                need.name()
            ));
        }
        let what = DigestInterval::WHAT;
        let text = match intervals[..] {
            [one] => one.split_once('=').unwrap_or_default().1,
            [] => return refused(format!("it needs {INTERVAL}, {what}")),
            _ => return refused(format!("'{INTERVAL}' is given twice")),
        };
        let interval =
            split_unit(text).and_then(|(n, unit)| DigestInterval::of(n, unit, time_unit(unit)));
        let Some(interval) = interval else {
            return refused(format!("{INTERVAL}='{text}' must be {what}"));
        };
        Ok(Selection {
            spec: spec.to_owned(),
            values: Values(within.values.0, Some(interval)),
            ..within
        })
    }

    /// Reads `name` or `name:key=value:key=value`, either with [`batched-`](Self::BATCHED) before it.
    ///
    /// # Errors
    /// [`SchemeError`], whose text says what is wrong and what would be right.
    pub fn select(&self, spec: &str) -> Result<Selection, SchemeError> {
        if let Some(rest) = spec.strip_prefix(Registry::BATCHED) {
            return self.select_batched(spec, rest);
        }
        let mut parts = spec.split(':');
        let name = parts.next().unwrap_or_default();
        let scheme = self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|s| s.name).collect();
            SchemeError(format!("unknown scheme '{name}'; {}", suggest(name, names)))
        })?;
        let mut values = Values::defaults(scheme.params);
        let mut seen = Vec::new();
        for part in parts {
            let (key, text) = part.split_once('=').ok_or_else(|| {
                SchemeError(format!(
                    "scheme '{spec}': '{part}' is not of the form key=value"
                ))
            })?;
            if seen.contains(&key) {
                return Err(SchemeError(format!(
                    "scheme '{spec}': '{key}' is given twice"
                )));
            }
            seen.push(key);
            let slot = values
                .0
                .iter_mut()
                .find(|(p, _)| p.name == key)
                .ok_or_else(|| {
                    let names: Vec<&str> = scheme.params.iter().map(|p| p.name).collect();
                    SchemeError(format!(
                        "scheme '{name}' has no parameter '{key}'; {}",
                        suggest(key, names)
                    ))
                })?;
            slot.1 = slot
                .0
                .kind
                .read(text)
                .map_err(|why| SchemeError(format!("scheme '{name}': {key}='{text}' {why}")))?;
        }
        for (param, value) in &mut values.0 {
            if matches!(value, Value::Missing) {
                *value = param.load_default().map_err(|why| {
                    SchemeError(format!("scheme '{name}' {why}: {name}:{}=...", param.name))
                })?;
            }
        }
        Ok(Selection {
            spec: spec.to_owned(),
            scheme,
            values,
        })
    }
}

impl Param {
    /// Has it to be written?
    pub fn is_required(&self) -> bool {
        matches!(self.kind, Kind::Loaded { default: None, .. })
    }

    /// What stands for one that was not written, or what is wrong.
    fn load_default(&self) -> Result<Value, String> {
        match self.kind {
            Kind::Loaded {
                default: Some(text),
                ..
            } => self.kind.read(text),
            _ => Err(format!("needs {}, {}", self.name, self.kind)),
        }
    }
}

impl Kind {
    /// The nearest allowed value to a plain number: a time in seconds, a rate in bit/s. Words and what is
    /// loaded stay as they are.
    pub fn within(&self, value: f64) -> f64 {
        match *self {
            Kind::Number { min, max, .. } => value.clamp(min, max),
            Kind::Count { min, max, .. } => libm::round(value).clamp(min as f64, max as f64),
            Kind::Time { min, max, .. } => value.clamp(min.as_secs_f64(), max.as_secs_f64()),
            Kind::Rate { min, max, .. } => value.clamp(min.as_bps() as f64, max.as_bps() as f64),
            Kind::Choice(_) | Kind::Loaded { .. } => value,
        }
    }

    /// The value that `text` stands for, or what is wrong with it.
    fn read(&self, text: &str) -> Result<Value, String> {
        if let Kind::Loaded { load, .. } = self {
            return load(text)
                .map(Value::Loaded)
                .map_err(|e| format!("is refused: {e}"));
        }
        self.read_plain(text)
            .ok_or_else(|| format!("must be {self}"))
    }

    fn read_plain(&self, text: &str) -> Option<Value> {
        let (number, unit) = split_unit(text)?;
        match *self {
            Kind::Number { min, max, .. } => {
                (unit.is_empty() && (min..=max).contains(&number)).then_some(Value::Number(number))
            }
            Kind::Count { min, max, .. } => {
                let n = text.parse().ok()?;
                (min..=max).contains(&n).then_some(Value::Count(n))
            }
            Kind::Time { min, max, .. } => {
                let d = Duration::from_secs_f64(number * time_unit(unit)?);
                (min..=max).contains(&d).then_some(Value::Time(d))
            }
            Kind::Rate { min, max, .. } => {
                let r = Rate::from_bps_f64(number * rate_unit(unit)?);
                (min..=max).contains(&r).then_some(Value::Rate(r))
            }
            Kind::Choice(words) => words.iter().find(|w| **w == text).map(|w| Value::Choice(w)),
            Kind::Loaded { .. } => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number { min, max, .. } => write!(f, "a number from {min} to {max}"),
            Kind::Count { min, max, .. } => write!(f, "a whole number from {min} to {max}"),
            Kind::Time { min, max, .. } => {
                write!(f, "a time from {min:?} to {max:?}, such as 20ms")
            }
            Kind::Rate { min, max, .. } => {
                write!(f, "a rate from {min:?} to {max:?}, such as 12Mbps")
            }
            Kind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Loaded { what, .. } => f.write_str(what),
        }
    }
}

/// Splits `12.5Mbps` into 12.5 and `Mbps`; a word has the number NaN.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-');
            !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || exponent)
        })
        .map_or(text.len(), |(i, _)| i);
    if end == 0 {
        return Some((f64::NAN, text));
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn time_unit(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1.0),
        "ms" => Some(1e-3),
        "us" => Some(1e-6),
        "ns" => Some(1e-9),
        _ => None,
    }
}

fn rate_unit(unit: &str) -> Option<f64> {
    match unit {
        "bps" => Some(1.0),
        "kbps" => Some(1e3),
        "Mbps" => Some(1e6),
        "Gbps" => Some(1e9),
        _ => None,
    }
}

/// A scheme that cannot be had as it was asked for. The text is one line for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemeError(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::SCHEMES;

    #[test]
    fn a_scheme_has_one_canonical_spelling() {
        let registry = Registry::new(SCHEMES);
        let canonical = |spec: &str| registry.select(spec).unwrap().canonical();
        assert_eq!(
            canonical("fixed-rate:rate=12Mbps"),
            "fixed-rate:rate=12000000bps"
        );
        assert_eq!(
            canonical("fixed-rate:rate=12000kbps"),
            canonical("fixed-rate:rate=1.2e7bps")
        );
        for scheme in registry.iter() {
            let once = canonical(scheme.name);
            assert_eq!(canonical(&once), once, "it can be read back");
        }
    }
}
