//! Client of the oracle, the Go program in `hack/yaml-oracle`. It answers questions in batches.

use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{Answer, Mode};

/// A running oracle.
pub struct Oracle {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Builds the program in `sources` into `dir` and starts it. Go's cache makes a second build fast.
    ///
    /// # Errors
    /// Go is missing, or the program cannot be built or started.
    pub fn start(sources: &Path, dir: &Path) -> Result<Self> {
        let program = dir.join("yaml-oracle");
        let status = Command::new("go")
            .args(["build", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(sources)
            .status()
            .context("cannot run go, which builds hack/yaml-oracle")?;
        if !status.success() {
            bail!("go build of hack/yaml-oracle failed ({status}); its output is above");
        }
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let input = child.stdin.take().context("the oracle has no input")?;
        let output = child.stdout.take().context("the oracle has no output")?;
        Ok(Self {
            child,
            input: BufWriter::with_capacity(1 << 20, input),
            output: BufReader::with_capacity(1 << 20, output),
        })
    }

    /// Returns Go's answers for the texts.
    ///
    /// # Errors
    /// The oracle exited.
    pub fn ask(&mut self, texts: &[(Mode, &[u8])]) -> Result<Vec<Answer>> {
        let Self { input, output, .. } = self;
        std::thread::scope(|scope| {
            // The batch is written and read concurrently, because full pipes would cause a deadlock.
            let sender = scope.spawn(move || send(input, texts));
            let answers = texts.iter().map(|_| receive(output)).collect::<Result<_>>();
            match sender.join() {
                Ok(sent) => sent?,
                Err(_) => bail!("the thread that asks the oracle ended"),
            }
            answers
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(input: &mut BufWriter<ChildStdin>, texts: &[(Mode, &[u8])]) -> Result<()> {
    for (mode, text) in texts {
        let mode = match mode {
            Mode::Document => b"d",
            Mode::Stream => b"s",
        };
        input.write_all(mode)?;
        input.write_all(&u32::try_from(text.len())?.to_be_bytes())?;
        input.write_all(text)?;
    }
    Ok(input.flush()?)
}

fn receive(output: &mut BufReader<ChildStdout>) -> Result<Answer> {
    let mut length = [0; 4];
    output.read_exact(&mut length).context("the oracle ended")?;
    let mut response = vec![0; usize::try_from(u32::from_be_bytes(length))?];
    output.read_exact(&mut response).context("the oracle ended")?;
    Ok(Answer::parse(&response))
}
