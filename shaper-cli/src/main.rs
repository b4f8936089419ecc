//! The `shaper` command.

use std::{
    env,
    io::{self, BufWriter},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    ExitCode::from(shaper_cli::run(env::args_os(), &mut out, &mut io::stderr().lock()))
}
