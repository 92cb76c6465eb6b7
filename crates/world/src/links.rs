//! Builds the links that a scenario describes.

use std::sync::Arc;

use headway_cc::{Router, Stream};
use headway_net::queue::Discipline;
use headway_net::trace::Trace;
use headway_net::{Link, Server, TraceCursor};
use headway_scenario::{LinkSpec, Network, RateSpec, TraceSpec};

use crate::changes::{Changes, set_loss};
use crate::setup::SetupError;

/// Gives a run its traces: a trace, or why it is not available.
pub type TraceSource<'a> = &'a dyn Fn(&TraceSpec) -> Result<Arc<Trace>, String>;

/// The links of a network, in its order, and their changes. `router` is the one that the run's
/// schemes need.
///
/// # Errors
/// [`SetupError::Trace`]
pub fn build_links(
    network: &Network,
    router: Option<Router>,
    traces: TraceSource<'_>,
    seed: u64,
) -> Result<(Vec<Link>, Changes), SetupError> {
    let mut links = Vec::with_capacity(network.links.len());
    let mut idle_losses = Vec::with_capacity(network.links.len());
    for spec in &network.links {
        let mut link = build_link(spec, router, traces, seed)?;
        let stream = Stream::new(seed, &format!("link.{}.loss", spec.name));
        idle_losses.push(set_loss(&mut link, spec.loss, stream));
        links.push(link);
    }
    Ok((links, Changes::new(network.changes.clone(), idle_losses)))
}

/// The link without its loss.
fn build_link(
    spec: &LinkSpec,
    router: Option<Router>,
    traces: TraceSource<'_>,
    seed: u64,
) -> Result<Link, SetupError> {
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
            let trace = traces(trace).map_err(SetupError::Trace)?;
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

/// The router that a run's schemes need, for `router = "scheme"`: that of the scheme under `test`,
/// or of the first other scheme that has one. `of_scheme` gives a scheme's router.
pub fn router_of_run(
    network: &Network,
    test: Option<Router>,
    of_scheme: impl Fn(&str) -> Option<Router>,
) -> Option<Router> {
    let mut named = network.flows.iter().filter_map(|f| f.scheme.as_deref());
    test.or_else(|| named.find_map(of_scheme))
}

/// The discipline of the link's queue in a run whose schemes need `router`.
pub(crate) fn discipline(spec: &LinkSpec, router: Option<Router>) -> Discipline {
    match router {
        Some(router) if spec.router_of_scheme => router.into(),
        _ => spec.queue.discipline.clone(),
    }
}
