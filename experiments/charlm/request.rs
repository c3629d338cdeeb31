//! What the program is asked, and the sizes that go with it.

use std::path::PathBuf;

use crate::drive::Keeping;
use experiments::command::{self, Command};
use experiments::transformer::methods::Method;
use experiments::transformer::shape::{Shape, Size};
use experiments::transformer::task::Task;
use experiments::transformer::text::Text;
use experiments::transformer::train::{BATCH, CONTEXT, HEADS, JUDGED, Plan, SMALL, SMOKE};

pub const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--method", "--steps", "--seed", "--seeds", "--checkpoint", "--generate", "--out"],
    flags: &["--long", "--copy", "--study", "--quick", "--resume"],
    ..Command::new(
        "charlm [--method NAME] [--long | --copy | --study] [--quick] [--steps N] [--seed SEED] [--seeds N] \
         [--checkpoint FOLDER [--resume]] [--generate N] [--out FILE.svg]",
    )
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Text,
    Long,
    Copy,
    Study,
}

pub struct Request {
    pub mode: Mode,
    quick: bool,
    pub methods: Vec<String>,
    steps: usize,
    pub seed: u64,
    /// Seeds of the study, from 0 on.
    pub seeds: u64,
    pub keeping: Keeping,
    pub generate: usize,
    pub out: PathBuf,
}

/// The methods of the default run, and of the long one.
const COMPARED: [&str; 2] = ["exact", LINEAR];
pub const LINEAR: &str = "favor-orthogonal";

impl Mode {
    fn read(asked: &command::Request) -> Result<Self, String> {
        let modes = [("--long", Mode::Long), ("--copy", Mode::Copy), ("--study", Mode::Study)];
        let mut given = modes.into_iter().filter(|(flag, _)| asked.has(flag));
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => Err("only one of --long, --copy and --study can be run".into()),
            (mode, _) => Ok(mode.map_or(Mode::Text, |(_, mode)| mode)),
        }
    }

    /// Steps, layers and the width; on two cores a step of these takes about 50, 130, 25 and 25 milliseconds.
    fn sizes(self) -> [usize; 3] {
        match self {
            Mode::Text => [1200, 2, 96],
            Mode::Long => [6000, 4, 128],
            Mode::Copy => [1500, 2, 64],
            Mode::Study => SMALL.0,
        }
    }

    fn rate(self) -> f64 {
        match self {
            Mode::Text => 5e-3,
            Mode::Long => 3e-3,
            Mode::Copy | Mode::Study => SMALL.1,
        }
    }
}

pub fn read(asked: &command::Request) -> Result<Request, String> {
    let (mode, quick) = (Mode::read(asked)?, asked.has("--quick"));
    let all: &[&str] = match mode {
        Mode::Text => &COMPARED,
        Mode::Long => &[LINEAR],
        Mode::Copy => &crate::copy::METHODS,
        Mode::Study => &[],
    };
    let method = asked.text("--method");
    let methods = method.clone().map_or(all.iter().map(ToString::to_string).collect(), |method| vec![method]);
    methods.iter().try_for_each(|method| Method::named(method).map(|_| ()))?;
    let directory = asked.text("--checkpoint").map(PathBuf::from);
    let resume = asked.has("--resume");
    if resume && directory.is_none() {
        return Err("--resume needs --checkpoint: the folder with the runs".into());
    }
    if mode != Mode::Study && asked.text("--seeds").is_some() {
        return Err("--seeds is for --study; another run takes one --seed".into());
    }
    if mode == Mode::Study && (method.is_some() || resume) {
        return Err("--study runs all methods, and always goes on from what is there".into());
    }
    if mode == Mode::Study && (asked.text("--seed").is_some() || asked.text("--out").is_some()) {
        return Err("--study takes --seeds in place of --seed, and draws no picture for --out".into());
    }
    if matches!(mode, Mode::Copy | Mode::Study) && asked.text("--generate").is_some() {
        return Err("--generate is for models of the text, which --copy and --study do not print".into());
    }
    let steps = if quick { SMOKE[0] } else { mode.sizes()[0] };
    Ok(Request {
        mode,
        quick,
        methods,
        steps: asked.count("--steps", steps, (1, 1_000_000))?,
        seed: asked.whole("--seed", 0, (0, 1 << 40))?,
        seeds: asked.whole("--seeds", 3, (2, 100))?,
        keeping: Keeping { directory, resume },
        generate: asked.count("--generate", if quick { 40 } else { 400 }, (0, 1_000_000))?,
        out: asked.out("charlm.svg")?,
    })
}

impl Request {
    pub fn size(&self, text: &Text) -> Size {
        let [_, layers, width] = self.mode.sizes();
        let (layers, width) = if self.quick { (SMOKE[1], SMOKE[2]) } else { (layers, width) };
        Size { characters: text.characters(), context: CONTEXT, width, heads: HEADS, layers }
    }

    pub fn plan(&self, method: &str, text: &Text) -> Result<Plan, String> {
        Method::named(method)?;
        Ok(Plan {
            task: if self.mode == Mode::Copy { Task::Copy } else { Task::Text },
            method: method.into(),
            size: self.size(text),
            seed: self.seed,
            steps: self.steps,
            batch: BATCH[usize::from(self.quick)],
            rate: self.mode.rate(),
        })
    }

    /// The most windows that are judged by.
    pub fn judged(&self) -> usize {
        match self.mode {
            _ if self.quick => JUDGED[1],
            Mode::Study => JUDGED[0],
            _ => usize::MAX,
        }
    }

    pub fn heading(&self, text: &Text) -> String {
        let Size { context, width, heads, layers, .. } = self.size(text);
        let smoke = if self.quick { "smoke, no evidence\n" } else { "" };
        format!(
            "{smoke}{} characters to learn from, {} held out, {} kinds; a transformer of {} parameters: width {width}, {layers} \
             layers of {heads} heads, context {context}; {} steps\n",
            text.training.len(),
            text.held_out.len(),
            text.characters(),
            Shape::new(self.size(text)).count,
            self.steps,
        )
    }
}
