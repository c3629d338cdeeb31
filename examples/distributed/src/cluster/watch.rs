//! [`Scheduler`]: what the scheduler of a cluster says of it, over HTTP.

use std::collections::BTreeSet;

use datafusion::common::Result;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::net::TcpStream;

use crate::fault::{external, refuse};

/// The scheduler at `host:port`.
#[derive(Clone, Debug)]
pub struct Scheduler {
    address: String,
}

#[derive(Deserialize)]
struct Job {
    job_id: String,
    job_name: String,
    start_time: u64,
}

#[derive(Deserialize)]
struct Stages {
    stages: Vec<Stage>,
}

#[derive(Deserialize)]
struct Stage {
    /// A number.
    stage_id: String,
    tasks: Vec<Option<Task>>,
}

#[derive(Deserialize)]
struct Task {
    status: serde_json::Value,
    partition_id: Vec<usize>,
}

impl Scheduler {
    /// The scheduler at `host:port`.
    pub fn at(address: &str) -> Self {
        Scheduler { address: address.to_owned() }
    }

    /// The number of executors that are there.
    ///
    /// # Errors
    /// If it does not answer, or not as one of Ballista 55 with its interface over HTTP.
    pub async fn executors(&self) -> Result<usize> {
        Ok(self.answer::<Vec<IgnoredAny>>(Method::GET, "/api/executors").await?.len())
    }

    /// The partitions of the table that the latest job of this name has been through; none if there is no such job.
    ///
    /// # Errors
    /// As [`executors`](Scheduler::executors).
    pub async fn partitions_done(&self, job: &str) -> Result<BTreeSet<usize>> {
        let Some(id) = self.latest(job).await? else { return Ok(BTreeSet::new()) };
        let Stages { stages } = self.answer(Method::GET, &format!("/api/job/{id}/stages")).await?;
        // The first stage reads the table.
        let first = stages.into_iter().min_by_key(|stage| stage.stage_id.parse::<u64>().ok());
        let tasks = first.into_iter().flat_map(|stage| stage.tasks).flatten();
        let done = tasks.filter(|task| task.status == "Successful");
        Ok(done.flat_map(|task| task.partition_id).collect())
    }

    /// Ends the latest job of this name, if there is one.
    ///
    /// # Errors
    /// As [`executors`](Scheduler::executors).
    pub async fn cancel(&self, job: &str) -> Result<()> {
        if let Some(id) = self.latest(job).await? {
            self.answer::<IgnoredAny>(Method::PATCH, &format!("/api/job/{id}")).await?;
        }
        Ok(())
    }

    /// That it accepts connections.
    ///
    /// # Errors
    /// A sentence if it does not.
    pub async fn reach(&self) -> Result<()> {
        match TcpStream::connect(&self.address).await {
            Ok(_) => Ok(()),
            Err(error) => refuse(format!("the scheduler at {} cannot be reached: {error}", self.address)),
        }
    }

    /// The latest job of this name.
    async fn latest(&self, job: &str) -> Result<Option<String>> {
        let jobs: Vec<Job> = self.answer(Method::GET, "/api/jobs").await?;
        let own = jobs.into_iter().filter(|own| own.job_name == job);
        Ok(own.max_by_key(|own| own.start_time).map(|own| own.job_id))
    }

    async fn answer<V: DeserializeOwned>(&self, method: Method, path: &str) -> Result<V> {
        let stream = TcpStream::connect(&self.address).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(external)?;
        tokio::spawn(connection);
        let request = Request::builder().method(method).uri(path).header(HOST, &self.address);
        let request = request.body(Empty::<Bytes>::new()).map_err(external)?;
        let response = sender.send_request(request).await.map_err(external)?;
        if response.status() != StatusCode::OK {
            return refuse(format!("{} answers {path} with {}", self.address, response.status()));
        }
        let body = response.into_body().collect().await.map_err(external)?;
        serde_json::from_slice(&body.to_bytes()).map_err(external)
    }
}
