//! Files that are right, files that are wrong, and files that are meant to do harm.

mod errors;
mod round_trip;

use clap::CommandFactory as _;
use proptest::{prelude::*, test_runner::Config as Runs};
use shaper_common::{
    abi::Overflow,
    units::{Bytes, PacketRate, Packets, Rate, Share},
    verdict::Action,
};

use super::*;
use crate::{
    args::{Cli, DirectionChoice},
    model::{
        AccountChoice, ByteLimit, Config, Direction, Found, HookChoice, Limits, Match, Net, Order, PacketLimit, Per,
        PortRange, Ports, Rule, Side,
    },
    plan::example,
};

const HEAD: &str = "version = 1\n[[attach]]\ndev = \"eth0\"\n";

fn understood(text: &str) -> Configuration {
    let source = Source::new("f", text.as_bytes().to_vec());
    read(&source).unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render()))
}

/// What is wrong: `LINE:COLUMN: CAUSE` and hint of each error, by turns.
fn wrong(text: &[u8]) -> Vec<String> {
    let source = Source::new("f", text.to_vec());
    let Err(diagnostics) = read(&source) else { return Vec::new() };
    let rendered = diagnostics.render();
    let lines = rendered.lines().filter_map(|line| line.strip_prefix("error: f:").or(line.strip_prefix(" hint: ")));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_file_has_the_words_and_units_of_the_command_line() {
    let text = r#"
        version = 1
        [[attach]]
        dev = "eth0"
        direction = "both"
        rate = "1gbit"
        burst = "2gbit"
        total = "5gbit"
        max-flows = 0x1_000
        overhead = -4
        [[attach.rule]]
        name = "guests \u00fc"
        match = ["10.20.0.0/16", "2001:db8:20::/48"]
        proto = "udp"
        port = "53"
        per = "src/24"
        rate = "20mbit"
        exceed = "dscp=CS1"
        [[attach.rule]]
        name = "local"
        match = "192.0.2.7"
        side = "local"
        proto = 17
        sport = 5000
        dport = "1-65535"
        block = true
        [[attach]]
        dev = "eth1"
        pps = 500
        block = false
    "#;
    let configuration = understood(text);
    assert_eq!((configuration.places(), configuration.rules()), (3, 4));
    let [first, second] = configuration.attachments.as_slice() else { panic!("{configuration:?}") };
    assert_eq!((first.dev.as_str(), first.direction), ("eth0", DirectionChoice::Both));
    let Config { limits, max_flows, overhead, rules, .. } = &first.config;
    assert_eq!((*max_flows, *overhead), (4096, -4));
    assert_eq!(limits.rate, example::byte_limit(1_000_000_000, 1 << 28, true));
    assert_eq!(limits.total, example::byte_limit(5_000_000_000, 156_250_000, false));
    let range = |first, last| PortRange { first, last };
    let expected = [
        Rule {
            name: "guests ü".to_owned(),
            matches: Match {
                nets: [("10.20.0.0", 16), ("2001:db8:20::", 48)]
                    .map(|(address, len)| Net::around(address.parse().expect("an address"), len))
                    .to_vec(),
                proto: Some(17),
                ports: Ports::Either(range(53, 53)),
                ..Match::default()
            },
            per: "src/24".parse().ok(),
            limits: Limits {
                rate: example::byte_limit(20_000_000, 625_000, false),
                exceed: Action::Dscp(8),
                ..Limits::default()
            },
        },
        Rule {
            name: "local".to_owned(),
            matches: Match {
                nets: vec![Net::around([192, 0, 2, 7].into(), 32)],
                side: Side::Local,
                proto: Some(17),
                ports: Ports::Both { sport: range(5000, 5000), dport: range(1, 65535) },
            },
            per: None,
            limits: Limits::BLOCK,
        },
    ];
    assert_eq!(rules.as_slice(), expected);
    let pps = Limits { pps: example::packet_limit(500, 125, false), ..Limits::default() };
    assert_eq!((second.direction, &second.config), (DirectionChoice::Ingress, &Config::of(pps)));
    assert_eq!(understood("version = 1").attachments.len(), 0);
}

#[test]
fn every_option_of_attach_is_a_key() {
    let root = Cli::command();
    let attach = root.find_subcommand("attach").expect("attach");
    // What is said of one command line, and not of a state.
    let of_the_line = ["dry-run", "confirm"];
    let mut options: Vec<&str> =
        attach.get_arguments().filter_map(clap::Arg::get_long).filter(|option| !of_the_line.contains(option)).collect();
    let mut keys: Vec<&str> = attachment::keys().chain(limits::LIMITS.iter().map(|key| key.name)).collect();
    keys.retain(|key| !["dev", "rule"].contains(key));
    options.sort_unstable();
    keys.sort_unstable();
    assert_eq!(keys, options);
}

#[test]
fn the_same_match_in_another_attachment_is_another() {
    let one = |dev| format!("[[attach]]\ndev = \"{dev}\"\nrate = 8\n[[attach.rule]]\nname = \"a\"\nrate = 8\n");
    assert_eq!(understood(&format!("version = 1\n{}{}", one("eth0"), one("eth1"))).rules(), 2);
}

#[test]
fn rules_that_the_data_plane_cannot_hold_are_refused() {
    let rules: String =
        (1..2000).map(|port| format!("[[attach.rule]]\nmatch = \"192.0.2.7\"\nport = {port}\nrate = 8\n")).collect();
    let errors = wrong(format!("{HEAD}rate = 8\n{rules}").as_bytes());
    assert!(errors[0].starts_with("3:7: `192.0.2.7/32`: its addresses can meet 1999 rules"), "{errors:?}");
    assert_eq!(errors.len(), 2);
}

#[test]
fn unlimited_goes_with_the_total_of_the_device() {
    let configuration =
        understood(&format!("{HEAD}unlimited = true\ntotal = \"1gbit\"\n[[attach.rule]]\nunlimited = true"));
    let Config { limits, rules, .. } = &configuration.attachments[0].config;
    let total = example::byte_limit(1_000_000_000, 31_250_000, false);
    assert_eq!(*limits, Limits { total, ..Limits::default() });
    // As on the command line, a rule is called what it matches.
    assert_eq!((rules[0].name.as_str(), &rules[0].limits), ("any", &Limits::default()));
}

/// The file that is shown to people.
const EXAMPLE: &str = include_str!("../../../../examples/shaper.toml");

#[test]
fn the_example_is_right() {
    let configuration = understood(EXAMPLE);
    assert!(configuration.places() > 1 && configuration.rules() > 1);
}
