//! Fits on a Ballista cluster of real processes, a scheduler and two executors, and what travels there.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ballista::prelude::SessionConfigExt;
use datafusion::arrow::array::{ArrayRef, Float64Array};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use random_features_distributed::cluster::codec::LogicalCodec;
use random_features_distributed::cluster::session::ballista_with;
use random_features_distributed::cluster::watch::Scheduler;
use random_features_distributed::fault::sentence;
use random_features_distributed::fit::{self, Task};
use random_features_distributed::generate::Generator;
use random_features_distributed::session;
use random_features_distributed::table::RowTable;

use crate::common::{
    bytes, difference, floats, local_pca, local_ridge, partitions, pattern, spec, table_of, write,
};

/// What jobs are called.
const JOB: &str = "tested";

/// A cluster, ended when it is dropped.
struct Cluster {
    script: Child,
    address: String,
    executors: Vec<u32>,
}

impl Cluster {
    /// A scheduler and two executors, with these options.
    fn start(options: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster");
        let mut script = Command::new(script)
            .args(["--port", &free_ports(5).to_string(), "--lost-after", "3", "--"])
            .args(options)
            .env("RF", env!("CARGO_BIN_EXE_rf"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.find(|line| line.starts_with("ready ")).expect("the cluster did not start");
        let words: Vec<&str> = ready.split(' ').collect();
        let executors = words[2..].iter().map(|pid| pid.parse().unwrap()).collect();
        Cluster { script, address: words[1].to_owned(), executors }
    }

    /// A session, with results fetched over the network even from the own machine.
    async fn session(&self, partitions: usize) -> SessionContext {
        let config = SessionConfig::new_with_ballista()
            .with_target_partitions(partitions)
            .with_ballista_job_name(JOB)
            .with_ballista_shuffle_reader_force_remote_read(true);
        ballista_with(&self.address, config).await.unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        kill("-TERM", self.script.id());
        let _ = self.script.wait();
    }
}

/// A process, ended when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill(signal: &str, pid: u32) {
    let _ = Command::new("kill").args([signal, &pid.to_string()]).status();
}

/// The first of so many consecutive ports that are free now.
fn free_ports(count: u16) -> u16 {
    (0..100)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port())
        .filter(|first| first.checked_add(count).is_some())
        .find(|first| (*first..first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()))
        .expect("there are free ports")
}

/// The table of a folder, in as many partitions as the session asks for.
async fn table(context: &SessionContext, folder: &Path) -> RowTable {
    let table = table_of(context, folder).await;
    let asked = context.state().config().target_partitions();
    assert!(asked > 1);
    assert_eq!(partitions(&table, asked).await, asked);
    table
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_those_of_a_local_pass() {
    let folder = tempfile::tempdir().unwrap();
    let generator =
        Generator { rows: 300_007, columns: 3, files: 7, group: 30_000, skewed: true, ..Default::default() };
    generator.write(folder.path()).unwrap();
    let map = spec(3, 64);
    let expected = bytes(&local_ridge(&generator, &map));
    let cluster = Cluster::start(&[]);
    let context = cluster.session(5).await;
    let scheduler = Scheduler::at(&cluster.address);
    assert_eq!(scheduler.executors().await.unwrap(), 2);
    assert!(scheduler.partitions_done(JOB).await.unwrap().is_empty());

    let ridge = Task::ridge(map.clone(), "y", generator.names());
    let state = fit::run(&context, table(&context, folder.path()).await, &ridge).await.unwrap();
    assert!(state.knows_rows() && bytes(&state.gram::<f32>().unwrap()) == expected);
    assert_eq!(scheduler.partitions_done(JOB).await.unwrap(), (0..5).collect());
    let pca = Task::pca(map.clone(), generator.names());
    let state = fit::run(&context, table(&context, folder.path()).await, &pca).await.unwrap();
    assert!(bytes(&state.gram::<f32>().unwrap()) == bytes(&local_pca(&generator, &map)));

    // In SQL over a table of the engine's own.
    context.register_parquet("t", &pattern(folder.path()), ParquetReadOptions::default()).await.unwrap();
    let recipe = serde_json::to_string(&map.recipe).unwrap();
    let sql = format!("SELECT ridge('{recipe}', 42, y, x0, x1, x2) FROM t");
    let state = fit::state_of(context.sql(&sql).await.unwrap()).await.unwrap();
    assert!(!state.knows_rows() && state.count().unwrap() == 300_007);
    assert!(difference(&state.gram::<f32>().unwrap(), &local_ridge(&generator, &map), &map) < 1e-5);

    // A fault of the data is a sentence here too.
    let missing = folder.path().join("part-00003.parquet");
    let rows = table(&context, folder.path()).await;
    std::fs::remove_file(&missing).unwrap();
    let error = sentence(&fit::run(&context, rows, &ridge).await.unwrap_err());
    assert!(error.contains("part-00003.parquet cannot be read") && !error.contains("Execution("), "{error}");
}

/// A state above 16 MiB goes over the network in spite of messages of at most so many bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_state_travels() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { rows: 20_000, columns: 4, files: 2, ..Default::default() };
    generator.write(folder.path()).unwrap();
    let map = spec(4, 2560);
    let cluster = Cluster::start(&[]);
    let context = cluster.session(2).await;
    let task = Task::ridge(map.clone(), "y", generator.names());
    let state = fit::run(&context, table(&context, folder.path()).await, &task).await.unwrap();
    assert!(state.to_bytes().len() > 16 << 20);
    assert!(bytes(&state.gram::<f32>().unwrap()) == bytes(&local_ridge(&generator, &map)));
}

/// A state of 80 MB does so too: of 4096 features of `f64`.
#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_many_features_travels() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { rows: 300, columns: 4, files: 1, ..Default::default() };
    let (x, y) = generator.points(0, generator.rows);
    let targets: ArrayRef = Arc::new(Float64Array::from_iter_values(y.iter().map(|y| f64::from(*y))));
    let points = x.columns().into_iter().map(|column| floats(column.to_vec()));
    let names = ["x0", "x1", "x2", "x3"];
    let columns = names.into_iter().zip(points).chain([("y", targets)]).collect();
    write(&folder.path().join("a.parquet"), columns);
    let cluster = Cluster::start(&[]);
    let context = cluster.session(2).await;
    let task = Task::ridge(spec(4, 4096), "y", names);
    // What arrives has the checksum of what was sent, and the number of rows.
    let state = fit::run(&context, table_of(&context, folder.path()).await, &task).await.unwrap();
    assert!(state.is_double() && state.to_bytes().len() > 80_000_000);
}

/// An executor hangs in the middle of a job and is killed: the other does its work, and no row counts twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { rows: 400_000, columns: 3, files: 4, ..Default::default() };
    generator.write(folder.path()).unwrap();
    let map = spec(3, 64);
    let marker = folder.path().join("hangs");
    let cluster = Cluster::start(&["--hang", marker.to_str().unwrap()]);
    let context = cluster.session(6).await;
    let task = Task::ridge(map.clone(), "y", generator.names());
    let rows = table(&context, folder.path()).await;
    let job = tokio::spawn({
        let (context, task) = (context.clone(), task.clone());
        async move { fit::run(&context, rows, &task).await }
    });
    let victim = loop {
        match std::fs::read_to_string(&marker).map(|pid| pid.parse::<u32>()) {
            Ok(Ok(pid)) => break pid,
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        assert!(!job.is_finished(), "no executor hung");
    };
    let other = cluster.executors.iter().copied().find(|pid| *pid != victim).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    kill("-KILL", victim);
    let state = tokio::time::timeout(Duration::from_secs(120), job).await.unwrap().unwrap().unwrap();
    assert!(bytes(&state.gram::<f32>().unwrap()) == bytes(&local_ridge(&generator, &map)));
    // Another one is started, and the first two are gone: it does the next job alone.
    let port = free_ports(2);
    let (data, grpc) = (port.to_string(), (port + 1).to_string());
    let restarted = Command::new(env!("CARGO_BIN_EXE_rf"))
        .args([
            "executor",
            "--scheduler",
            &cluster.address,
            "--slots",
            "1",
            "--port",
            &data,
            "--grpc-port",
            &grpc,
        ])
        .spawn()
        .unwrap();
    let _restarted = Process(restarted);
    tokio::time::sleep(Duration::from_secs(2)).await;
    kill("-KILL", other);
    let again = fit::run(&context, table(&context, folder.path()).await, &task);
    let again = tokio::time::timeout(Duration::from_secs(120), again).await.unwrap().unwrap();
    assert_eq!(again, state);
}

/// An executor that delivers rows twice gives an error, never a sum.
#[tokio::test(flavor = "multi_thread")]
async fn a_double_delivery_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { rows: 400_000, columns: 3, files: 4, ..Default::default() };
    generator.write(folder.path()).unwrap();
    let cluster = Cluster::start(&["--twice"]);
    let context = cluster.session(6).await;
    let task = Task::ridge(spec(3, 64), "y", generator.names());
    let job = fit::run(&context, table(&context, folder.path()).await, &task);
    let error = tokio::time::timeout(Duration::from_secs(120), job).await.unwrap().unwrap_err().to_string();
    assert!(error.contains("is counted already"), "{error}");
}

/// A cluster on ports of which one is taken does not say that it is ready.
#[test]
fn a_taken_port_is_refused() {
    for place in [0, 3] {
        let first = free_ports(5);
        let _taken = TcpListener::bind(("127.0.0.1", first + place)).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster");
        let mut script = Command::new(script);
        script.args(["--port", &first.to_string()]).env("RF", env!("CARGO_BIN_EXE_rf"));
        let output = script.output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(why.contains(&format!("port {} is taken", first + place)), "{why}");
        assert!(output.stdout.is_empty());
    }
}

/// What a table says of its partitions travels with it.
#[tokio::test]
async fn the_least_rows_of_a_partition_travel() {
    let generator = Generator { rows: 40_000, columns: 2, files: 2, ..Default::default() };
    let context = session::local();
    let folder = tempfile::tempdir().unwrap();
    generator.write(folder.path()).unwrap();
    let table = table_of(&context, folder.path()).await;
    let default = RowTable::new(table.files().clone(), table.file_schema().clone()).unwrap();
    assert_eq!((partitions(&table, 5).await, partitions(&default, 5).await), (5, 1));
    let (codec, name, schema) = (LogicalCodec::default(), TableReference::bare("t"), table.schema());
    let mut bytes = Vec::new();
    codec.try_encode_table_provider(&name, Arc::new(table), &mut bytes).unwrap();
    let read = codec.try_decode_table_provider(&bytes, &name, schema, &context.task_ctx()).unwrap();
    assert_eq!(partitions(read.as_ref(), 5).await, 5);
}
