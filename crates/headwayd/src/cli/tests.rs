use super::*;

fn run(options: &[&str]) -> Box<Run> {
    let words = ["headwayd", "run"]
        .into_iter()
        .chain(options.iter().copied());
    match Cli::try_parse_from(words).expect("options").command {
        Command::Run(run) => run,
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_of_an_agent_are_refused_without_one() {
    for (options, hint) in [
        (&["--metrics"][..], "--metrics is an agent's"),
        (&["--shadow"], "--shadow is"),
        (
            &["--shadow", "file", "--busy-poll"],
            "--shadow, --busy-poll are",
        ),
        (&["--state", "/tmp"], "--state is"),
        (&["--report-interval", "0"], "--report-interval is"),
        (&["--flows", "1", "--ring", "8"], "--flows, --ring are"),
    ] {
        let options = [&["--no-agent"], options].concat();
        let error = check(&run(&options)).expect_err(hint).to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
    let all = [
        "--no-agent",
        "--default",
        "--log",
        "json",
        "--socket",
        "/tmp/s",
    ];
    assert!(check(&run(&all)).is_ok());
}

#[test]
fn options_of_a_policy_are_refused_where_it_has_no_use_for_them() {
    for (options, hint) in [
        (
            &["--controllers", "headway_bbr", "--shadow"][..],
            "are a policy's",
        ),
        (
            &["--controllers", "headway_bbr", "--state", "/tmp"],
            "are a policy's",
        ),
        (&["--policy", "owl", "--state", "/tmp"], "none does"),
        (
            &["--policy", "aurora:model=int8-v1", "--shadow", "file"],
            "evaluated in the kernel",
        ),
    ] {
        let Err(error) = chosen(&run(options)) else {
            panic!("{options:?}")
        };
        let error = error.to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
    let learns = ["--policy", "owl:online=true", "--state", "/tmp", "--shadow"];
    assert!(chosen(&run(&learns)).is_ok());
}

/// An earlier agent has pinned the program, with another number of slots.
#[test]
fn a_users_share_of_slots_is_of_those_that_the_program_has() {
    let asked = ["--policy", "owl", "--flows", "16384", "--user-share", "50"];
    for (slots, of_user) in [(4096, 2048), (16_384, 8192), (1, 1)] {
        let options = agent_options(&run(&asked), slots);
        assert_eq!(options.flows_of_user, Some(of_user));
    }
}

fn start_of(unit: &str) -> &str {
    let mut lines = unit.lines();
    lines
        .find(|line| line.starts_with("ExecStart="))
        .expect("it starts something")
}

#[test]
fn the_unit_runs_this_program() {
    let unit = unit().expect("a path");
    let own = env::current_exe().expect("a path");
    let start = format!("\nExecStart={} run --log json", own.display());
    assert!(unit.contains(&start), "{unit}");
    assert!(!unit.contains(USUAL_PATH), "{unit}");
    // A reload reaches it whatever --socket it has, and metrics are served where they are asked
    // for.
    assert!(
        unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"),
        "{unit}"
    );
    assert!(!start_of(&unit).contains("--metrics"), "{unit}");
    for bound in [
        "MemoryMax=",
        "TasksMax=",
        "SystemCallFilter=@system-service bpf\n",
    ] {
        assert!(unit.contains(&format!("\n{bound}")), "{bound}");
    }
}

#[test]
fn help_has_an_example() {
    use clap::CommandFactory;
    let help = Cli::command().render_help().to_string();
    assert!(help.contains("headwayd run --policy owl"), "{help}");
}
