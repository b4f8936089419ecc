//! The packets that are kept: each is read as its file says.

use std::{collections::BTreeSet, fs, path::Path};

use shaper_common::packet::parse;
use tests::corpus::{describe, samples};

#[test]
fn every_packet_of_the_corpus_is_read_as_its_file_says() {
    for sample in samples() {
        let parsed = parse(&sample.bytes[..], sample.link);
        assert_eq!(describe(&parsed), sample.expect, "{}", sample.name);
    }
}

#[test]
fn every_file_of_the_corpus_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = fs::read_dir(folder).expect("the folder is beside the tests").map(|entry| {
        let name = entry.expect("a readable folder").file_name();
        name.into_string().expect("a name in plain letters")
    });
    let listed = samples().into_iter().map(|sample| format!("{}.packet", sample.name));
    assert_eq!(files.collect::<BTreeSet<_>>(), listed.collect::<BTreeSet<_>>());
}
