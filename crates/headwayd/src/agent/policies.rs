//! Which policy a flow has, by its destination.

use std::net::IpAddr;
use std::sync::Arc;

use headway_fixed::Limits;
use headway_kernel::abi::SettingValues;
use headway_policy::schemes::PolicySpec;
use ipnet::IpNet;

use super::{Class, Kernel};
use crate::error::{Error, Result};
use crate::programs::Controller;

/// Settings that do not depend on a flow's policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentOptions {
    /// The time between two records of a flow; `None`: the policy's choice.
    pub report_interval_us: Option<u32>,
    /// Does Cubic control all flows (`--shadow`)?
    pub is_shadow: bool,
    /// Does a file say what the policy would have done (`--shadow FILE`)?
    pub is_written_down: bool,
    /// Does Cubic control flows whose paths are outside the training range of their model?
    pub requires_range: bool,
    /// How many flows of a user are served at once; `None`: no limit. Root has none.
    pub flows_of_user: Option<u32>,
    /// How many flows of a user learn at once; `None`: no limit of its own. Root has none.
    pub learners_of_user: Option<usize>,
    /// Are flows from an address to itself served too?
    pub serves_loopback: bool,
}

impl AgentOptions {
    /// The report interval of a policy that the program evaluates itself: enough for `headwayd
    /// status`.
    const OWN_POLICY_INTERVAL_US: u32 = 100_000;

    /// Settings for flows without a policy. The guard has no time limit here, so what a tuner has
    /// set stays set while no agent runs.
    pub fn without_policy(self) -> SettingValues {
        let limits = Limits::default().without_answer_limits();
        SettingValues {
            report_interval_us: self.report_interval_us.unwrap_or(0),
            limits,
            learner_limits: limits,
            ..self.admitting(SettingValues::default())
        }
    }

    /// The settings, with these options' limits on which flows are served.
    fn admitting(self, settings: SettingValues) -> SettingValues {
        SettingValues {
            flows_of_user: self.flows_of_user.unwrap_or(u32::MAX),
            serves_loopback: self.serves_loopback.into(),
            ..settings
        }
    }
}

/// A policy for each prefix of destinations, and one for all others.
#[derive(Clone, Debug)]
pub struct Policies {
    /// The longest prefixes come first. The last entry is for all other destinations.
    by_prefix: Vec<(Option<IpNet>, Arc<PolicySpec>)>,
}

impl Policies {
    /// Reads `SPEC`, and `PREFIX=SPEC` for destinations of a prefix. One has to be without a
    /// prefix.
    ///
    /// # Errors
    /// One line, if a spec or a prefix is wrong, or one is given twice.
    pub fn read<'a>(specs: impl IntoIterator<Item = &'a str>) -> Result<Policies> {
        let mut by_prefix = Vec::new();
        for text in specs {
            let (prefix, spec) = split(text)?;
            if by_prefix.iter().any(|(other, _)| *other == prefix) {
                let which = prefix.map_or("all destinations".to_owned(), |p| p.to_string());
                return Err(Error::Usage(format!(
                    "--policy: two policies for {which}; give one"
                )));
            }
            let served =
                PolicySpec::read(spec).map_err(|e| Error::Usage(format!("--policy: {e}")))?;
            by_prefix.push((prefix, Arc::new(served)));
        }
        by_prefix.sort_by_key(|(prefix, _)| {
            std::cmp::Reverse(prefix.map_or(-1, |p| i32::from(p.prefix_len())))
        });
        match by_prefix.last() {
            Some((None, _)) => Ok(Policies { by_prefix }),
            _ => Err(Error::Usage(
                "--policy: each one has a prefix; add one --policy without a prefix, for all other destinations"
                    .to_owned(),
            )),
        }
    }

    /// The same policies, read from their files again.
    pub fn read_again(&self) -> Result<Policies> {
        let text = |(prefix, served): &(Option<IpNet>, Arc<PolicySpec>)| match prefix {
            Some(prefix) => format!("{prefix}={}", served.spec()),
            None => served.spec().to_owned(),
        };
        let texts: Vec<String> = self.by_prefix.iter().map(text).collect();
        Policies::read(texts.iter().map(String::as_str))
    }

    /// The controller that carries out what the policies decide, unless an option names another.
    pub fn controller(&self) -> Controller {
        Controller::of(self.otherwise().agent())
    }

    /// Checks that `controller` can carry out what the policies decide, and that the options fit
    /// them.
    ///
    /// # Errors
    /// One line, if they do not.
    pub fn check(&self, controller: Controller, options: AgentOptions) -> Result<()> {
        let mut all = self.by_prefix.iter();
        all.try_for_each(|(_, served)| controller.check(served.spec(), served.agent()))?;
        if options.requires_range && options.is_shadow {
            return Err(Error::Usage(
                "--require-range gives flows to Cubic, which has all flows with --shadow; give one of the two (with either, \
                 headwayd status says which flows are outside)"
                    .to_owned(),
            ));
        }
        if options.requires_range {
            let mut all = self.by_prefix.iter();
            all.try_for_each(|(_, served)| check_range(served))?;
        }
        let settings = |served: &PolicySpec| served.agent().map(SettingValues::of);
        let common = settings(self.otherwise());
        let other = self.by_prefix.iter().find(|(_, s)| settings(s) != common);
        if let Some((_, other)) = other {
            return Err(Error::Usage(format!(
                "--policy: '{}' has other bounds of rates or growth than '{}', and a controller has one set of bounds; run one \
                 headwayd for each policy, each with its own --name",
                other.spec(),
                self.otherwise().spec()
            )));
        }
        let learner = self.by_prefix.iter().find(|(_, s)| s.agent().is_none());
        if let (Some((_, learner)), true) = (learner, options.is_written_down) {
            return Err(Error::Usage(format!(
                "--shadow FILE: '{}' learns from its own actions, and does not act in a shadow; give --shadow without a file, or a \
                 policy that was trained before",
                learner.spec()
            )));
        }
        let own = self.by_prefix.iter().find(|(_, s)| s.int8().is_some());
        let Some((_, own)) = own else { return Ok(()) };
        if self.by_prefix.len() > 1 {
            return Err(Error::Usage(
                "--policy: a policy that is evaluated in the kernel is for all destinations; give it as the only --policy"
                    .to_owned(),
            ));
        }
        match options.is_written_down {
            false => Ok(()),
            true => Err(Error::Usage(format!(
                "--shadow FILE: int8 nets are evaluated in the kernel, which does not say what '{}' would have done; give --shadow \
                 without a file, or the policy that it was distilled from",
                own.spec()
            ))),
        }
    }

    /// Does one of the policies go on learning in use?
    pub fn learn(&self) -> bool {
        self.by_prefix
            .iter()
            .any(|(_, served)| served.is_learning())
    }

    /// The policies that go on learning in use, each with its prefix.
    pub fn learners(&self) -> impl Iterator<Item = (Option<IpNet>, &PolicySpec)> {
        let all = self.by_prefix.iter();
        all.filter(|(_, served)| served.is_learning())
            .map(|(prefix, served)| (*prefix, served.as_ref()))
    }

    /// Writes the settings for all flows of the program.
    ///
    /// # Errors
    /// One line: one of the guard's limits is beyond its range, and nothing is set.
    pub fn configure(&self, program: &mut impl Kernel, options: AgentOptions) -> Result<()> {
        program.configure(self.settings(options), self.otherwise().int8())
    }

    fn settings(&self, options: AgentOptions) -> SettingValues {
        let served = self.otherwise();
        let natural = served
            .int8()
            .map_or(0, |_| AgentOptions::OWN_POLICY_INTERVAL_US);
        let mut settings = served.agent().map(SettingValues::of).unwrap_or_default();
        settings.report_interval_us = options.report_interval_us.unwrap_or(natural);
        settings.is_shadow = options.is_shadow.into();
        options.admitting(settings)
    }

    /// The policy for destinations that match no prefix.
    pub fn otherwise(&self) -> &Arc<PolicySpec> {
        &self.by_prefix[self.by_prefix.len() - 1].1
    }

    /// The policy of a flow to `remote`.
    pub fn of(&self, remote: IpAddr) -> Arc<PolicySpec> {
        Arc::clone(&self.found(remote).1)
    }

    /// The class of destinations that `remote` belongs to.
    pub fn class(&self, remote: IpAddr) -> Class {
        Class::of(remote, self.found(remote).0)
    }

    fn found(&self, remote: IpAddr) -> &(Option<IpNet>, Arc<PolicySpec>) {
        let holds = |prefix: &Option<IpNet>| prefix.is_none_or(|p| p.contains(&remote));
        let mut all = self.by_prefix.iter();
        // The last entry matches all destinations.
        let found = all.find(|(prefix, _)| holds(prefix));
        found.unwrap_or(&self.by_prefix[self.by_prefix.len() - 1])
    }

    /// The policies as `headwayd status`, and the line that says that it is ready, have them.
    pub fn describe(&self, controller: &str) -> serde_json::Value {
        let served = self.otherwise();
        let prefixes: Vec<_> = (self.by_prefix.iter())
            .filter_map(|(prefix, served)| {
                Some(serde_json::json!({
                    "to": (*prefix)?.to_string(), "policy": served.spec(), "model": served.model_id(),
                }))
            })
            .collect();
        serde_json::json!({
            "name": controller,
            "policy": served.spec(),
            "model": served.model_id(),
            "prefixes": prefixes,
        })
    }
}

/// Checks that the policy has a training range, and that the agent can take flows from it.
fn check_range(served: &PolicySpec) -> Result<()> {
    let wrong = |why: &str| {
        Err(Error::Usage(format!(
            "--require-range: '{}' {why}",
            served.spec()
        )))
    };
    if served.int8().is_some() {
        return wrong(
            "is evaluated in the kernel, and the agent cannot take flows from it; leave the option out",
        );
    }
    match served.range() {
        Some(_) => Ok(()),
        None => wrong(
            "has no training range (training.range of its model's card); give a model that has one",
        ),
    }
}

/// Splits `10.0.0.0/8=owl:online=true` into a prefix and a spec. `owl:online=true` has no prefix.
fn split(text: &str) -> Result<(Option<IpNet>, &str)> {
    let Some((left, spec)) = text.split_once('=') else {
        return Ok((None, text));
    };
    if !left.contains('/') && left.parse::<IpAddr>().is_err() {
        return Ok((None, text));
    }
    let prefix = left
        .parse::<IpNet>()
        .or_else(|why| left.parse::<IpAddr>().map(IpNet::from).map_err(|_| why));
    let wrong = |_| {
        Error::Usage(format!(
            "--policy: '{}' is not a prefix; write one such as 10.0.0.0/8 or 2001:db8::/32",
            left.escape_debug()
        ))
    };
    Ok((Some(prefix.map_err(wrong)?.trunc()), spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_chooses_the_policy() {
        let policies = Policies::read(["owl", "10.0.0.0/8=owl-loss", "10.1.2.3=owl:online=true"]);
        let policies = policies.expect("policies");
        let of = |remote: &str| {
            policies
                .of(remote.parse().expect("an address"))
                .spec()
                .to_owned()
        };
        assert_eq!(of("10.1.2.3"), "owl:online=true");
        assert_eq!(of("10.1.2.4"), "owl-loss");
        assert_eq!(of("2001:db8::1"), "owl");
        let class = |remote: &str| {
            policies
                .class(remote.parse().expect("an address"))
                .to_string()
        };
        assert_eq!(class("10.1.2.4"), "10.0.0.0/8");
        assert_eq!(class("192.168.0.1"), "private");
        assert_eq!(class("1.1.1.1"), "public");
        let again = policies.read_again().expect("the same");
        assert_eq!(again.by_prefix.len(), 3);
    }

    #[test]
    fn wrong_policies_are_refused_in_one_line() {
        for (specs, hint) in [
            (vec!["10.0.0.0/8=owl"], "add one --policy without a prefix"),
            (vec!["owl", "owl-loss"], "two policies for all destinations"),
            (
                vec!["owl", "10.0.0.0/99=owl"],
                "'10.0.0.0/99' is not a prefix",
            ),
            (vec!["own"], "owl"),
            (vec!["learned:model=/nowhere"], "/nowhere"),
            (vec!["owl", "10.0.0.0/8=owl:latency=1ms"], "leave it out"),
            (vec!["owl:guard=off"], "leave 'guard=off' out"),
        ] {
            let error = Policies::read(specs).expect_err(hint).to_string();
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
    }

    /// The guard judges a flow over `epochs`, and its long starvation over `long_epochs`.
    #[test]
    fn learners_have_five_times_the_epochs_of_others() {
        for specs in [
            ["owl", "10.0.0.0/8=owl-loss"],
            ["owl", "10.0.0.0/8=owl:online=true"],
        ] {
            let policies = Policies::read(specs).expect("policies");
            let settings = policies.settings(AgentOptions::default());
            let of = |limits: Limits| (limits.epochs, limits.long_epochs, limits.undoubled);
            assert_eq!(of(settings.limits), (5, 20, 0), "{specs:?}");
            assert_eq!(of(settings.learner_limits), (25, 100, 2), "{specs:?}");
        }
    }

    #[test]
    fn policies_of_one_controller_have_the_same_bounds() {
        let check = |specs: [&str; 2]| {
            let policies = Policies::read(specs).expect("policies");
            policies.check(policies.controller(), AgentOptions::default())
        };
        let error = check(["aurora", "10.0.0.0/8=aurora:model=v1"]);
        let error = error.expect_err("3 Mbit/s at first, not 2").to_string();
        assert!(
            error.contains("'aurora:model=v1' has other bounds"),
            "{error}"
        );
        assert!(check(["owl", "10.0.0.0/8=owl-loss"]).is_ok());
    }

    #[test]
    fn a_range_is_required_only_of_policies_that_have_one() {
        let options = AgentOptions {
            requires_range: true,
            ..AgentOptions::default()
        };
        let check = |spec: &str| {
            let policies = Policies::read([spec]).expect("a policy of ours");
            policies.check(policies.controller(), options)
        };
        assert!(check("owl").is_ok() && check("rax-pretrained").is_ok());
        for (spec, hint) in [
            ("rax", "'rax' has no training range"),
            ("aurora:model=int8-v1", "evaluated in the kernel"),
        ] {
            let error = check(spec).expect_err(hint).to_string();
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_shadow_with_a_required_range_is_refused_in_one_line() {
        let policies = Policies::read(["owl"]).expect("a policy of ours");
        for (is_shadow, requires_range, is_refused) in [
            (true, false, false),
            (false, true, false),
            (true, true, true),
        ] {
            let options = AgentOptions {
                is_shadow,
                requires_range,
                ..AgentOptions::default()
            };
            let error = policies.check(policies.controller(), options).err();
            assert_eq!(error.is_some(), is_refused);
            for text in error.iter().map(ToString::to_string) {
                assert!(text.contains("give one of the two"), "{text}");
                assert!(!text.contains('\n'), "{text}");
            }
        }
    }

    #[test]
    fn a_shadow_file_is_refused_for_policies_whose_decisions_are_unknown() {
        let shadow = |is_written_down| AgentOptions {
            is_shadow: true,
            is_written_down,
            ..AgentOptions::default()
        };
        let own = Policies::read(["aurora:model=int8-v1"]).expect("a model of ours");
        assert!(own.check(Controller::Rate, shadow(false)).is_ok());
        let error = own.check(Controller::Rate, shadow(true)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("evaluated in the kernel") && !error.contains('\n'),
            "{error}"
        );
        let learner = Policies::read(["rax"]).expect("a scheme of ours");
        assert!(learner.check(Controller::Window, shadow(false)).is_ok());
        let error = learner
            .check(Controller::Window, shadow(true))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("'rax' learns") && !error.contains('\n'),
            "{error}"
        );
        let agents = Policies::read(["aurora"]).expect("a model of ours");
        assert!(agents.check(Controller::Rate, shadow(true)).is_ok());
    }
}
