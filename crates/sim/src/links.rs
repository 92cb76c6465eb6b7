//! Links as a scenario describes them.

use headway_cc::{Registry, Router, Selection, Stream};
use headway_net::queue::Discipline;
use headway_net::{Link, Loss, LossProcess, Server, TraceCursor};
use headway_scenario::{LinkSpec, Network, RateSpec};

use crate::error::SimulationError;
use crate::simulation::TraceSource;

/// The link without its loss. `router` is what the schemes ask for.
pub(crate) fn build_link(
    spec: &LinkSpec,
    router: Option<Router>,
    traces: TraceSource<'_>,
    seed: u64,
) -> Result<Link, SimulationError> {
    let limits = spec.queue.limits();
    let discipline = &discipline(spec, router);
    let stream = |part: &str| Stream::new(seed, &format!("link.{}.{part}", spec.name));
    let mut link = match &spec.rate {
        RateSpec::Unlimited => Link::wire(spec.delay),
        RateSpec::Fixed(rate) if *discipline == Discipline::DropTail => {
            Link::fifo(*rate, limits, spec.delay)
        }
        RateSpec::Fixed(rate) => {
            let queue = discipline.build(limits, 0, stream("queue"));
            Link::queued(queue, Server::fixed(*rate), spec.delay)
        }
        RateSpec::Trace {
            trace,
            offset,
            once,
        } => {
            let trace = traces(trace).map_err(SimulationError::Trace)?;
            let queue = discipline.build(limits, TraceCursor::OVERHEAD, stream("queue"));
            let server = Server::trace(trace, *offset, *once);
            Link::queued(queue, server, spec.delay)
        }
    };
    if let Some(jitter) = spec.jitter {
        link = link.with_jitter(jitter, stream("jitter"));
    }
    if let Some(reorder) = spec.reorder {
        link = link.with_reorder(reorder, stream("reorder"));
    }
    Ok(link)
}

/// The router that a run's schemes ask for, `test` first: what `router = "scheme"` stands for.
pub(crate) fn router_of_schemes(
    network: &Network,
    test: &Selection,
    registry: &Registry,
) -> Option<Router> {
    let named = network.flows.iter().filter_map(|f| f.scheme.as_deref());
    let mut named = named.filter_map(|name| registry.select(name).ok());
    let of_named = || named.find_map(|s| s.scheme.router);
    test.scheme.router.or_else(of_named)
}

/// What the link's queue is in a run whose schemes ask for `router`.
pub(crate) fn discipline(spec: &LinkSpec, router: Option<Router>) -> Discipline {
    match router {
        Some(router) if spec.router_of_scheme => router.into(),
        _ => spec.queue.discipline.clone(),
    }
}

/// Loses packets from now on. Gives the stream back where nothing is lost.
pub(crate) fn set_loss(link: &mut Link, loss: Option<Loss>, stream: Stream) -> Option<Stream> {
    let Some(loss) = loss else {
        return Some(stream);
    };
    link.set_loss(Some(LossProcess::new(loss, stream)));
    None
}
