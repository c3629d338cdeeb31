//! Wall time, with throughput shown as nanoseconds per element instead of elements per second.

use std::time::{Duration, Instant};

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};

pub struct PerFeature(pub WallTime);

impl Measurement for PerFeature {
    type Intermediate = Instant;
    type Value = Duration;

    fn start(&self) -> Instant {
        self.0.start()
    }

    fn end(&self, start: Instant) -> Duration {
        self.0.end(start)
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        self.0.add(a, b)
    }

    fn zero(&self) -> Duration {
        self.0.zero()
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        self.0.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for PerFeature {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        self.0.formatter().scale_values(typical, values)
    }

    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        if let Throughput::Elements(count) = throughput {
            values.iter_mut().for_each(|nanoseconds| *nanoseconds /= *count as f64);
        }
        "ns/(point·feature)"
    }

    fn scale_for_machines(&self, values: &mut [f64]) -> &'static str {
        self.0.formatter().scale_for_machines(values)
    }
}
