//! What is wrong with a file, place by place, and files that are meant to do harm.

use super::*;

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
