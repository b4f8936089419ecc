//! Files that are right, files that are wrong, and files that are meant to do harm.

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
fn each_error_has_its_place_and_a_hint() {
    let attach = |keys: &str| format!("{HEAD}{keys}\n");
    let rule = |keys: &str| format!("{HEAD}rate = \"1gbit\"\n[[attach.rule]]\n{keys}\n");
    for (text, errors) in [
        (String::new(), &["1:1: `version`: missing", "start the file with `version = 1`"][..]),
        ("version = 2".to_owned(), &["1:11: not a version that this shaper reads", "write `version = 1`"]),
        ("version = \"1\"".to_owned(), &["1:11: not a version that this shaper reads", "write `version = 1`"]),
        ("version = 1\natach = 5".to_owned(), &["2:1: `atach`: no such key", "did you mean `attach`?"]),
        (
            "version = 1\nrate = \"8\"".to_owned(),
            &["2:1: `rate`: no such key", "what limits a device stands under `[[attach]]`"],
        ),
        (
            "version = 1\n[attach]\ndev = \"eth0\"".to_owned(),
            &["2:1: this is a table, and the key takes tables", "write `[[attach]]` above the keys of an attachment"],
        ),
        (
            "version = 1\nattach = [5]".to_owned(),
            &[
                "2:11: this is a whole number, and the key takes tables",
                "write `[[attach]]` above the keys of an attachment",
            ],
        ),
        (
            "version = 1\n[[attach]]\nrate = \"8\"".to_owned(),
            &["2:1: `dev`: missing", "name the device, like `dev = \"eth0\"`"],
        ),
        (attach(""), &["2:1: nothing is limited", "give one of rate, pps, total, block, unlimited"]),
        (attach("block = false"), &["2:1: nothing is limited", "give one of rate, pps, total, block, unlimited"]),
        (
            attach("rate = \"10mbps\""),
            &["4:8: `mbps` in `10mbps`: tc reads this as bytes/s, most others as bits/s", "write `10mbit` or `10MB/s`"],
        ),
        (attach("rate = 10mbit"), &["4:8: `10mbit` is not in quotes", "write `\"10mbit\"`"]),
        (
            attach("rate = \"8\"\nrate = \"9\""),
            &["5:1: `rate`: given more than once", "give it once; each attachment starts with `[[attach]]`"],
        ),
        (
            attach("rate = 1.5"),
            &[
                "4:8: this is a number with a fraction, and the key takes a string or a whole number",
                "write `\"100mbit\"`",
            ],
        ),
        (
            attach("rate = \"8\"\nper = 1979-05-27"),
            &["5:7: this is a date or time, and the key takes a string", "write `\"flow\"` or `\"src/24\"`"],
        ),
        (
            attach("rate = [\"8\"]"),
            &["4:8: this is an array, and the key takes a string or a whole number", "write `\"100mbit\"`"],
        ),
        (
            attach("rate = {bits = 8}"),
            &["4:8: this is a table, and the key takes a string or a whole number", "write `\"100mbit\"`"],
        ),
        (
            attach("rate.bits = 8"),
            &["4:1: this is a table, and the key takes a string or a whole number", "write `\"100mbit\"`"],
        ),
        (attach("block = \"yes\""), &["4:9: this is a string, and the key takes true or false", "write true or false"]),
        (
            attach("rate = 99999999999999999999999999999999999999999"),
            &["4:8: `99999999999999999999999999999999999999999` is too large a number", "write `\"100mbit\"`"],
        ),
        (attach("rate = \"8\"\nmax-flows = 0"), &["5:13: `0` is not a whole number in range", "write 1 to 16777216"]),
        (attach("rate = \"8\"\nmpu = -1"), &["5:7: `-1` is not a whole number in range", "write 0 to 256"]),
        (
            attach("rate = \"8\"\noverflow = \"all\"\nhook = \"xdp\"\ndirection = \"in\""),
            &[
                "5:12: `all` is not one of its values",
                "values: shared, open, closed",
                "6:8: `xdp` is not one of its values",
                "values: auto, tcx, clsact",
                "7:13: `in` is not one of its values",
                "values: ingress, egress, both",
            ],
        ),
        (
            attach("rate = \"8\"\nper = \"src/0\""),
            &[
                "5:7: `src/0`: a prefix of 0 bits is the same for everybody",
                "lengths start at 1; one bucket for all is `per = \"dev\"`",
            ],
        ),
        (attach("pps = 5\nburst = \"64kb\""), &["5:9: `burst`: needs a rate, and there is none", "give `rate` too"]),
        (
            attach("rate = 8\nsoft = \"10%\""),
            &[
                "5:8: `soft`: 10% above 8 bit/s is not a whole number of bits/s, and nothing is rounded",
                "the nearest is `peak = \"9bit\"`",
            ],
        ),
        (
            attach("rate = \"1mbit\"\npeak = \"1mbit\""),
            &[
                "5:8: `peak`: the peak, 1 Mbit/s, does not exceed the rate, 1 Mbit/s",
                "give a `peak` that does, or `soft = \"10%\"`",
            ],
        ),
        (
            attach("rate = \"1mbit\"\npeak = \"2mbit\"\nsoft = \"10%\""),
            &["6:8: `soft`: cannot go with `peak`", "leave out one of the two"],
        ),
        (
            attach("block = true\nexceed = \"drop\""),
            &["4:9: `block`: cannot go with `exceed`", "leave out one of the two"],
        ),
        // A word that is wrong is no reason to say that something is missing.
        (attach("rat = \"8\""), &["4:1: `rat`: no such key", "did you mean `rate`?"]),
        (
            attach("rate = \"8\"\nmatch = \"10.0.0.0/8\""),
            &["5:1: `match`: the key belongs into another table", "write it under `[[attach.rule]]`"],
        ),
        (
            "version = 1\n[[attach]]\ndev = \"veth*\"\nrate = \"8\"".to_owned(),
            &[
                "3:7: `veth*` is a pattern, and patterns are not supported",
                "name the device; each device has an `[[attach]]` of its own",
            ],
        ),
        (
            "version = 1\n[[attach]]\ndev = \"a/b\"\nrate = \"8\"".to_owned(),
            &[
                "3:7: `a/b` is not the name of a device",
                "names have 1 to 15 bytes, without `/`, `:` and spaces; `ip link` lists them",
            ],
        ),
        (
            format!(
                "{HEAD}rate = 8\n[[attach]]\ndev = \"eth0\"\ndirection = \"egress\"\nrate = 8\n[[attach]]\ndev = \"eth0\"\ndirection = \"both\"\nrate = 8"
            ),
            &["10:7: eth0 ingress is on line 3 already", "each direction of a device has one `[[attach]]`"],
        ),
        (
            rule(
                "rate = 8\nmatch = \"2001:db8:1111:2222:3333:4444:5555:6666\"\nproto = \"udplite\"\nport = \"10000-20000\"",
            ),
            &[
                "5:1: `name`: missing, and `2001:db8:1111:2222:3333:4444:5555:6666/128 udplite port 10000-20000` is too \
                 long for a name",
                "name the rule, like `name = \"guests\"`",
            ],
        ),
        (
            rule("unlimited = true\ntotal = 8"),
            &["6:13: `unlimited`: cannot go with `total`", "leave out one of the two"],
        ),
        (
            rule("rate = 8\nmatch = [\"10.1.2.3/8\", \"::ffff:192.0.2.7\", \"10.0.0.0/33\"]"),
            &[
                "7:10: `10.1.2.3/8` has host bits",
                "write `10.0.0.0/8`",
                "7:24: `::ffff:192.0.2.7` is IPv6 and matches no IPv4 packet",
                "write `192.0.2.7/32`",
                "7:44: `33` in `10.0.0.0/33` is not a prefix length",
                "write 0 to 32",
            ],
        ),
        (
            rule("rate = 8\nmatch = [\"10.0.0.0/8\", \"10.0.0.0/8\"]"),
            &["7:24: `10.0.0.0/8`: given more than once", "give it once"],
        ),
        (
            rule("rate = 8\nside = \"local\""),
            &["7:8: `side`: says whose address is in CIDR, and there is none", "give a CIDR too"],
        ),
        (
            rule("rate = 8\nproto = \"icmp\"\nport = 53"),
            &["8:8: `port`: icmp has no ports", "protocols with ports: tcp, udp, udplite, sctp, dccp"],
        ),
        (
            rule("rate = 8\nport = \"9-5\"\nproto = 256"),
            &[
                "7:8: `9-5` ends before it begins",
                "write `5-9`",
                "8:9: `256` is not a protocol",
                "protocols: tcp, udp, icmp, icmpv6, sctp, dccp, udplite, gre, esp, ah and so on, or 0 to 255",
            ],
        ),
        (
            rule("name = \"\"\nrate = 8"),
            &["6:8: `` has 0 bytes", "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`"],
        ),
        (
            rule("name = \"\\u001b[2J\"\nrate = 8"),
            &[
                "6:8: `\\u{1b}[2J` has characters that cannot be shown",
                "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`",
            ],
        ),
        (
            rule("name = \"default\"\nrate = 8"),
            &[
                "6:8: `default` is what no rule matches",
                "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`",
            ],
        ),
        (rule("name = \"a\""), &["5:1: nothing is limited", "give one of rate, pps, total, block, unlimited"]),
        (
            rule("name = \"a\"\nrate = 8\nmatch = []"),
            &["8:9: no address is in no prefix", "leave `match` out for any address"],
        ),
        (
            rule("name = \"a\"\nrate = 8\nhook = \"tcx\""),
            &["8:1: `hook`: the key belongs into another table", "write it under `[[attach]]`"],
        ),
        (
            rule("name = \"a\"\nrate = 8\nport = 5\ndport = 6"),
            &["8:8: `port`: cannot go with `dport`", "leave out one of the two"],
        ),
        (
            rule(
                "name = \"a\"\nrate = 8\nmatch = [\n\"10.0.0.0/8\",\n\"11.0.0.0/8\"]\n[[attach.rule]]\nname = \"a\"\nrate = 9\nmatch = \"11.0.0.0/8\"",
            ),
            &[
                "12:8: `a` is the name of the rule on line 6",
                "each rule of an attachment has a name of its own",
                "14:9: 11.0.0.0/8 is matched on line 10 already, with the same side, protocol and ports",
                "leave it out of one of the two",
            ],
        ),
        (
            rule("name = \"a\"\nrate = 8\nproto = 6\n[[attach.rule]]\nname = \"b\"\nrate = 9\nproto = \"tcp\""),
            &[
                "9:1: this is matched on line 5 already, with the same side, protocol and ports",
                "leave it out of one of the two",
            ],
        ),
        (
            rule("name = \"a\"\nrate = 8\nmatch = 5"),
            &[
                "8:9: this is a whole number, and the key takes a string or an array of strings",
                "write `\"10.20.0.0/16\"` or `[\"10.20.0.0/16\", \"2001:db8:20::/48\"]`",
            ],
        ),
    ] {
        assert_eq!(wrong(text.as_bytes()), errors, "{text}");
    }
}

#[test]
fn the_same_match_in_another_attachment_is_another() {
    let one = |dev| format!("[[attach]]\ndev = \"{dev}\"\nrate = 8\n[[attach.rule]]\nname = \"a\"\nrate = 8\n");
    assert_eq!(understood(&format!("version = 1\n{}{}", one("eth0"), one("eth1"))).rules(), 2);
}

#[test]
fn what_is_no_toml_has_a_place_and_a_hint() {
    const LAYOUT: &str = "a line is `key = \"value\"`, `key = 5` or a header: `[[attach]]` or `[[attach.rule]]`";
    for (text, place) in [
        (&b"version = 1\n[[attach]"[..], "2:10: unclosed array table, expected `]`"),
        (b"version = 1\nrate", "2:5: key with no value, expected `=`"),
        (b"version = 1\nrate: 5", "2:5: invalid unquoted key, expected letters, numbers, `-`, `_`"),
        (b"version = 1\nrate =", "2:7: there is no value"),
        (b"version = 1\nrate = \"8", "2:10: invalid basic string, expected `\"`"),
        (b"version = 1\nrate = [\"8\"", "2:12: unclosed array, expected `]`"),
        (b"version = 1\nrate = 08", "2:8: unexpected leading zero"),
        (b"version = 1\n\0", "2:1: invalid unquoted key, expected letters, numbers, `-`, `_`"),
        (b"version = 1\0", "1:11: `1\\u{0}` has characters that cannot be shown"),
    ] {
        assert_eq!(wrong(text), [place, LAYOUT], "{}", text.escape_ascii());
    }
    assert_eq!(wrong(b"version = 1\n#\xff"), ["2:2: this is not UTF-8", "write the file in UTF-8"]);
    assert_eq!(understood("\u{feff}version = 1\r\n").places(), 0);
    assert_eq!(
        wrong(
            format!("{HEAD}rate = 8.1.2\nburst = 8\n{}", "[[attach.rule]]\nmatch = 10.0.0.0/8\nrate = 8\n".repeat(2))
                .as_bytes()
        ),
        [
            "4:8: `8.1.2` is not in quotes",
            "write `\"8.1.2\"`",
            "7:9: `10.0.0.0/8` is not in quotes",
            "write `\"10.0.0.0/8\"`",
            "10:9: `10.0.0.0/8` is not in quotes",
            "write `\"10.0.0.0/8\"`",
        ]
    );
    // Values that are none do not hide the errors of other lines, nor make any.
    assert_eq!(
        wrong(b"version = 1\n[[attach]]\ndev = eth0\nrate = \"8mbps\"\n"),
        [
            "3:7: `eth0` is not in quotes",
            "write `\"eth0\"`",
            "4:8: `mbps` in `8mbps`: tc reads this as bytes/s, most others as bits/s",
            "write `8mbit` or `8MB/s`"
        ]
    );
}

#[test]
fn what_is_meant_to_do_harm_is_refused() {
    let many = 50_000;
    for text in [
        "[".repeat(many),
        "]".repeat(many),
        "=".repeat(many),
        "\"".repeat(many),
        "x".repeat(many),
        "a.".repeat(many),
        "x={".repeat(many),
        format!("x = {}", "[".repeat(many)),
        format!("x = {}{}", "[".repeat(many), "]".repeat(many)),
        "a = 1\n".repeat(many),
        "[[a]]\n[a]\n".repeat(many),
        format!("a = [{}]", "1_, ".repeat(many)),
        format!("{HEAD}rate = \"{}\"", "8".repeat(many)),
        format!("{HEAD}{} = 1", "r".repeat(many)),
        format!("{HEAD}rate = 8\n{}", "[[attach.rule]]\n".repeat(many)),
        format!("{HEAD}rate = 8\n{}", "[[attach.rule]]\nname = \"a\"\nrate = 8\n".repeat(many / 10)),
        format!("{HEAD}rate = 8\n[[attach.rule]]\nname = \"a\"\nmatch = [{}]", "\"x\", ".repeat(many)),
        format!("{HEAD}rate = 8\n{}", "dev = \"\u{1b}\u{202e}\"\n".repeat(many)),
    ] {
        let errors = wrong(text.as_bytes());
        assert!(!errors.is_empty() && errors.len() <= 40, "{}", &text[..60]);
        for line in errors {
            assert!(line.chars().count() < 500 && !line.contains(crate::text::is_unsafe), "{line}");
        }
    }
}

proptest! {
    #![proptest_config(Runs { failure_persistence: None, ..Runs::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "\\PC*") {
        wrong(&bytes);
        wrong(text.as_bytes());
    }

    #[test]
    fn any_change_of_a_file_is_read_or_refused(at in 0..EXAMPLE.len(), len in 0..40_usize, with in "[\\[\\]{}=\"'#.\\\\\n a0-]{0,3}") {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        let end = (at + len).min(bytes.len());
        bytes.splice(at..end, with.into_bytes());
        wrong(&bytes);
    }

    #[test]
    fn what_is_written_reads_back(found in prop::collection::vec(founds(), 0..4)) {
        // Of a device and direction there is one.
        let found: Vec<Found> =
            found.into_iter().enumerate().map(|(n, found)| Found { dev: format!("{n}{}", found.dev), ..found }).collect();
        let text = write(&found);
        prop_assert!(text.lines().all(|line| !line.contains(crate::text::is_unsafe)));
        let read = understood(&text).attachments;
        prop_assert_eq!(read.len(), found.len());
        for (read, found) in read.iter().zip(&found) {
            prop_assert_eq!(&read.dev, &found.dev);
            prop_assert_eq!(read.direction.directions(), &[found.direction]);
            prop_assert_eq!(&read.config, &found.config);
        }
    }
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
const EXAMPLE: &str = include_str!("../../../examples/shaper.toml");

#[test]
fn the_example_is_right() {
    let configuration = understood(EXAMPLE);
    assert!(configuration.places() > 1 && configuration.rules() > 1);
}

fn founds() -> impl Strategy<Value = Found> {
    ("[a-zA-Z0-9_.\"'\\\\ü-]{1,6}", prop_oneof![Just(Direction::Ingress), Just(Direction::Egress)], configs())
        .prop_map(|(dev, direction, config)| Found { dev, direction, config, ..example::found() })
}

fn configs() -> impl Strategy<Value = Config> {
    let first = (
        limits(),
        pers(),
        1..=Config::MOST_FLOWS,
        prop_oneof![Just(Overflow::Shared), Just(Overflow::Open), Just(Overflow::Closed)],
    );
    let second = (
        prop_oneof![Just(AccountChoice::L2), Just(AccountChoice::L3), Just(AccountChoice::Wire)],
        -64..=256_i32,
        0..=256_u32,
        prop_oneof![Just(HookChoice::Auto), Just(HookChoice::Tcx), Just(HookChoice::Clsact)],
        prop_oneof![Just(Order::First), Just(Order::Last)],
    );
    let rules = prop::collection::vec(rules(), 0..=5);
    (first, second, rules).prop_map(|(first, second, mut rules)| {
        let (limits, per, max_flows, overflow) = first;
        let (account, overhead, mpu, hook, order) = second;
        for (n, rule) in rules.iter_mut().enumerate() {
            // No two are alike.
            rule.name.insert(0, char::from(b'a' + n as u8));
            rule.name.truncate(rule.name.trim_end().len());
            rule.matches.proto = Some([6, 17, 33, 132, 136][n]);
            if rule.matches.nets.is_empty() {
                rule.matches.side = Side::Remote;
            }
            rule.matches.nets.sort();
            rule.matches.nets.dedup();
        }
        Config { limits, per, max_flows, overflow, account, overhead, mpu, hook, order, rules }
    })
}

fn rules() -> impl Strategy<Value = Rule> {
    let name = prop_oneof!["[ -~]{0,20}", "[a-z\"'\\\\#=\\[\\]äß漢😀\u{301}]{0,12}"];
    let net = prop_oneof![
        (any::<[u8; 4]>(), 0..=32_u8).prop_map(|(address, len)| Net::around(address.into(), len)),
        (any::<[u16; 8]>(), 0..=128_u8).prop_map(|(address, len)| Net::around(address.into(), len)),
    ];
    let range = || (1..=u16::MAX, 1..=u16::MAX).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) });
    let ports = prop_oneof![
        Just(Ports::Any),
        range().prop_map(Ports::Either),
        range().prop_map(Ports::Source),
        range().prop_map(Ports::Destination),
        (range(), range()).prop_map(|(sport, dport)| Ports::Both { sport, dport }),
    ];
    let side = prop_oneof![Just(Side::Remote), Just(Side::Local)];
    let matches = (prop::collection::vec(net, 0..4), side, ports).prop_map(|(nets, side, ports)| Match {
        nets,
        side,
        proto: None,
        ports,
    });
    (name, matches, prop::option::of(pers()), limits()).prop_map(|(name, matches, per, limits)| Rule {
        name,
        matches,
        per,
        limits,
    })
}

fn pers() -> impl Strategy<Value = Per> {
    let words = ["flow", "src", "dst", "pair", "dev", "src/24", "dst/1,128", "src/32,1"];
    prop::sample::select(words.map(|word| word.parse::<Per>().expect("a key")).to_vec())
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Drop),
        Just(Action::Pass),
        Just(Action::Ecn),
        (0..64_u8).prop_map(Action::Dscp),
        any::<u32>().prop_map(Action::Mark)
    ]
}

/// Bytes at a rate of bits/s, and a burst that was given or follows.
fn byte_limit(rate: Rate, burst: Option<u64>) -> ByteLimit {
    let given = burst.and_then(Bytes::new);
    ByteLimit { rate, burst: given.unwrap_or_else(|| rate.default_burst()), burst_given: given.is_some() }
}

fn limits() -> impl Strategy<Value = Limits> {
    let burst = || prop::option::of(prop_oneof![1..=1_u64 << 40, (0..=40_u32).prop_map(|shift| 1 << shift)]);
    let rate = || prop_oneof![8..=500_000_000_000_u64, (1..=500_u64).prop_map(|n| n * 1_000_000_000)];
    // A peak as a rate, as a share, or none.
    let peak = prop_oneof![Just(0), Just(1), Just(2)];
    let bytes =
        (prop::option::of((rate(), burst())), (peak, 1..=500_u64, burst()), prop::option::of((rate(), burst())));
    let packets = prop::option::of((1..=1_000_000_000_u64, prop::option::of(1..=1_u64 << 32)));
    (bytes, packets, actions(), actions()).prop_map(
        |((bytes, (kind, more, peak_burst), total), pps, exceed, violate)| {
            let limit = |(bits, burst)| Rate::new(bits).map(|rate| byte_limit(rate, burst));
            let rate = bytes.and_then(limit);
            let share = Share::parse(&format!("{more}%")).ok().filter(|_| kind == 2);
            let shared = rate.zip(share).and_then(|(rate, share)| share.above(rate.rate).ok());
            let peak = rate.and_then(|rate| match kind {
                1 => Rate::new(rate.rate.bits_per_second() + more),
                _ => shared,
            });
            let pps = pps.and_then(|(rate, burst)| {
                let rate = PacketRate::new(rate)?;
                let given = burst.and_then(Packets::new);
                Some(PacketLimit {
                    rate,
                    burst: given.unwrap_or_else(|| rate.default_burst()),
                    burst_given: given.is_some(),
                })
            });
            let total = total.and_then(limit);
            if rate.is_none() && pps.is_none() && total.is_none() {
                return Limits::BLOCK;
            }
            Limits {
                rate,
                peak: peak.map(|peak| byte_limit(peak, peak_burst)),
                soft: share.filter(|_| shared.is_some()),
                pps,
                total,
                exceed: if rate.is_some() || pps.is_some() { exceed } else { Action::Drop },
                violate: if peak.is_some() { violate } else { Action::Drop },
                block: false,
            }
        },
    )
}
