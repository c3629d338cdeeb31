//! [`Backward`]: the gradients of a job, part by part: through features, first of queries and then of keys, with roles swapped; and through
//! the pairs whose weights are exact.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView2, ArrayView4, ArrayViewMut2, s};

use super::super::features::Setup;
use super::super::input::Window;
use super::super::input::{Element, Heads, Job, KeyRun, Member, Numbers, Reading};
use super::super::linear::{Asker, Lag, Outlet, Scan, behind, estimates_behind, scan, see};
use super::super::pairs::{Neighbours, Ring, See};
use super::gradients::Gradients;
use super::pair_pulls::pull_pairs;
use super::pulls::{KEPT, Pulls, Role};
use super::records::{Parameters, Record, Records};
use crate::Real;

/// The gradients of a job, whose outputs are those of queries.
pub(in super::super) struct Backward<'j, 'a, T> {
    pub job: Job<'j, T>,
    /// Gradients with respect to the outputs of each member.
    pub upstream: Vec<ArrayView2<'a, T>>,
    pub of_keys: ArrayViewMut2<'a, T>,
    pub of_values: ArrayViewMut2<'a, T>,
}

/// What a job adds to the gradients of parameters, if they are asked for.
type Asked<'p, 'q, T> = Option<&'q mut Parameters<'p, T>>;

impl<'a, T: Real> Backward<'a, 'a, T> {
    /// Those of all heads, in order.
    pub fn jobs<E: Element<T>>(
        heads: &'a Heads<'_, E>,
        output_gradients: ArrayView4<'a, T>,
        Gradients { queries, keys, values }: &'a mut Gradients<T>,
    ) -> Vec<Self> {
        let [of_keys, of_values] = [keys, values].map(|all| heads.parts_of_keys(all.view_mut()));
        let upstream = |member: &Member<'a, T>| {
            let ([b, h, first], count) = (member.place, member.queries.nrows());
            output_gradients.slice_move(s![b, h, first..first + count, ..])
        };
        let backward = |(job, (of_keys, of_values)): (Job<'a, T>, (ArrayViewMut2<'a, T>, _))| {
            let upstream = job.members.iter().map(upstream).collect();
            Backward { job, upstream, of_keys, of_values }
        };
        let jobs = heads.jobs(queries.view_mut()).into_iter();
        jobs.zip(of_keys.into_iter().zip(of_values)).map(backward).collect()
    }
}

impl<T: Real> Backward<'_, '_, T> {
    /// Those of linear attention, with `ways` threads; `of_pairs` is how tokens are read for exact logits.
    pub fn run(
        mut self,
        setup: Setup<'_, T>,
        of_pairs: Option<Reading>,
        ways: usize,
        mut parameters: Asked<'_, '_, T>,
    ) {
        let kept = self.pull_queries(setup, ways, &mut parameters);
        let Backward { job: Job { keys, members, .. }, upstream, of_keys, of_values } = self;
        let mut sums = KeySums { of_keys, of_values, fresh: true };
        for ((member, upstream), kept) in members.into_iter().zip(upstream).zip(&kept) {
            let summed = Summed::new(member.queries.reborrow(), upstream, kept);
            let part = KeyPart { setup, keys: keys.reborrow(), queries: summed.run(), ways };
            part.through_features(&mut sums, &mut parameters);
            if let Some(reading) = of_pairs {
                part.through_neighbours(reading, &mut sums, &mut parameters);
                part.through_exact_keys(reading, &mut sums, &mut parameters);
            }
        }
    }

    /// Writes the gradients of queries; what keys need of each, for each member.
    fn pull_queries(
        &mut self,
        setup: Setup<'_, T>,
        ways: usize,
        parameters: &mut Asked<'_, '_, T>,
    ) -> Vec<Array2<f64>> {
        let rows = |member: &Member<'_, T>| Array2::zeros((member.queries.nrows(), KEPT));
        let mut kept: Vec<Array2<f64>> = self.job.members.iter().map(rows).collect();
        let window = setup.window();
        let mut behind = match setup.near {
            Some(_) if !setup.causal => estimates_behind(setup, &self.job, ways),
            _ => None,
        };
        let mut others = behind.iter_mut().flatten().map(|kept| kept.view_mut());
        let mut records = self.records_of_queries(setup.program.width(), parameters);
        let members = self.job.members.iter_mut().zip(&self.upstream).zip(&mut kept).zip(&mut records);
        let askers = members.map(|(((Member { queries, out, place }, upstream), kept), record)| {
            let (upstream, others) = (upstream.view(), others.next());
            let role = Role::Queries { upstream, others, kept: kept.view_mut() };
            let record = record.as_mut().map(Records::all);
            let pulls = Pulls { tokens: queries.reborrow(), gradients: out.view_mut(), role, record };
            Asker { queries: queries.reborrow(), out: Outlet::Pulls(pulls), origin: *place, place: 0 }
        });
        let lag = Lag { behind: window.before, ..Lag::NONE };
        let scan = Scan { keys: self.job.keys.reborrow(), askers: askers.collect(), lag };
        see(setup, scan, ways);
        self.add_records(setup, &records, parameters);
        if behind.is_some() {
            self.pull_queries_behind(setup, &kept, ways, parameters);
        }
        if setup.has_pairs() {
            self.pull_queries_of_pairs(setup, &kept, parameters);
        }
        kept
    }

    /// What is to be recorded of the queries of each member.
    fn records_of_queries(&self, features: usize, parameters: &Asked<'_, '_, T>) -> Vec<Option<Records<T>>> {
        let of = |member: &Member<'_, T>| records(&member.queries, features, parameters);
        self.job.members.iter().map(of).collect()
    }

    fn add_records(
        &self,
        setup: Setup<'_, T>,
        records: &[Option<Records<T>>],
        parameters: &mut Asked<'_, '_, T>,
    ) {
        for (member, records) in self.job.members.iter().zip(records) {
            add_records(setup, member.queries, records, parameters);
        }
    }

    /// Adds the part of the keys behind windows, by their features.
    fn pull_queries_behind(
        &mut self,
        setup: Setup<'_, T>,
        kept: &[Array2<f64>],
        ways: usize,
        parameters: &mut Asked<'_, '_, T>,
    ) {
        let mut records = self.records_of_queries(setup.program.width(), parameters);
        let mut parts: Vec<Array2<T>> =
            self.job.members.iter().map(|member| Array2::zeros(member.out.dim())).collect();
        let members = self.job.members.iter().zip(&self.upstream).zip(kept).zip(&mut parts).zip(&mut records);
        let askers = members.map(|((((member, upstream), kept), part), record)| {
            let role =
                Role::Known { upstream: upstream.slice(s![..;-1, ..]), kept: kept.slice(s![..;-1, ..]) };
            let queries = member.queries.reversed().reborrow();
            let record = record.as_mut().map(Records::reversed);
            let pulls = Pulls { tokens: queries, gradients: part.slice_mut(s![..;-1, ..]), role, record };
            Asker { queries, out: Outlet::Pulls(pulls), origin: member.place, place: 0 }
        });
        behind(setup, self.job.keys.reborrow(), askers.collect(), ways);
        self.add_records(setup, &records, parameters);
        self.job.members.iter_mut().zip(&parts).for_each(|(member, part)| member.out += part);
    }

    /// Adds the part of the pairs with exact weights.
    fn pull_queries_of_pairs(
        &mut self,
        setup: Setup<'_, T>,
        kept: &[Array2<f64>],
        parameters: &mut Asked<'_, '_, T>,
    ) {
        for ((member, upstream), kept) in self.job.members.iter_mut().zip(&self.upstream).zip(kept) {
            let mut part = Array2::zeros(member.out.dim());
            let role = Role::Known { upstream: upstream.view(), kept: kept.view() };
            let mut records = records(&member.queries, 0, parameters);
            let record = records.as_mut().map(Records::all);
            let pulls = Pulls { tokens: member.queries.reborrow(), gradients: part.view_mut(), role, record };
            pull_pairs((setup.reading, setup.normalised), pulls, |ring: &mut Ring<T>, rows, see| {
                setup.visit_pairs(ring, rows.start, rows.len(), see);
            });
            add_records(setup, member.queries, &records, parameters);
            member.out += &part;
        }
    }
}

/// Keys that ask for sums over queries.
struct KeyPart<'s, 'a, T> {
    /// As of queries.
    setup: Setup<'s, T>,
    keys: KeyRun<'a, T>,
    queries: KeyRun<'a, T>,
    ways: usize,
}

impl<T: Real> KeyPart<'_, '_, T> {
    /// Those that queries see by features. A key is seen by the queries from the end of the windows on, that is, by some of the last,
    /// and by those before windows, some of the first.
    fn through_features(&self, sums: &mut KeySums<'_, T>, parameters: &mut Asked<'_, '_, T>) {
        let KeyPart { setup, keys, queries, ways } = *self;
        let (before, after) = (setup.window().before, setup.window().after);
        let setup = Setup { swapped: true, ..setup.beside(None, None) };
        let both_ends = self.setup.near.is_some() && !setup.causal;
        if !setup.causal && !both_ends {
            return self.recorded(setup.program.width(), parameters, |records| {
                sums.add(|out| {
                    let out = (out, records.as_mut().map(Records::all));
                    let scan = scan_of_keys(keys.reborrow(), queries.reborrow(), out, Lag::NONE);
                    see(setup, scan, ways);
                });
            });
        }
        let lag = Lag { ahead: queries.len() + 1, behind: keys.len().saturating_add(before) };
        self.recorded(setup.program.width(), parameters, |records| {
            sums.add(|out| {
                let (keys, queries) = (keys.reversed().reborrow(), queries.reversed().reborrow());
                let out = out.map(|all| all.slice_move(s![..;-1, ..]));
                let out = (out, records.as_mut().map(Records::reversed));
                scan(setup, scan_of_keys(keys, queries, out, lag), ways);
            });
        });
        if both_ends {
            let lag = Lag { ahead: 0, behind: after };
            self.recorded(setup.program.width(), parameters, |records| {
                sums.add(|out| {
                    let out = (out, records.as_mut().map(Records::all));
                    scan(setup, scan_of_keys(keys.reborrow(), queries.reborrow(), out, lag), ways);
                });
            });
        }
    }

    /// Adds what `write` records of keys.
    fn recorded(
        &self,
        features: usize,
        parameters: &mut Asked<'_, '_, T>,
        write: impl FnOnce(&mut Option<Records<T>>),
    ) {
        let mut records = records(&self.keys.keys, features, parameters);
        write(&mut records);
        add_records(Setup { swapped: true, ..self.setup }, self.keys.keys, &records, parameters);
    }

    /// Those that are neighbours of queries.
    fn through_neighbours(
        &self,
        reading: Reading,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Asked<'_, '_, T>,
    ) {
        if self.setup.near.is_none() {
            return;
        }
        let Window { before, after } = self.setup.window();
        let queries = Neighbours::new((self.setup.window(), reading), self.queries, 0);
        let visit = |ring: &mut Ring<T>, rows: Range<usize>, see: &mut See<'_, T>| {
            let sees = |i: usize| {
                let place = rows.start + i;
                place.saturating_sub(after)..place.saturating_add(before)
            };
            queries.visit(ring, rows.len(), &sees, see);
        };
        self.recorded(0, parameters, |records| {
            sums.add(|out| {
                let pulls = pulls_of_keys(self.keys.reborrow(), out, records.as_mut().map(Records::all));
                pull_pairs((self.setup.reading, false), pulls, visit);
            });
        });
    }

    /// Those that have exact weights for all queries.
    fn through_exact_keys(
        &self,
        reading: Reading,
        sums: &mut KeySums<'_, T>,
        parameters: &mut Asked<'_, '_, T>,
    ) {
        let Some(exact) = self.setup.exact.filter(|exact| !exact.rows().is_empty()) else { return };
        let (rows, tokens) = (exact.rows(), exact.tokens());
        let queries = Neighbours::new((Window::default(), reading), self.queries, 0);
        let mut own =
            [tokens.keys.ncols(), tokens.values.ncols()].map(|dim| Array2::zeros((rows.len(), dim)));
        let mut records = records(&tokens.keys, 0, parameters);
        let record = records.as_mut().map(Records::all);
        let pulls = pulls_of_keys(tokens.reborrow(), own.each_mut().map(|own| own.view_mut()), record);
        pull_pairs((self.setup.reading, false), pulls, |ring: &mut Ring<T>, asked: Range<usize>, see| {
            let first = |i: usize| if self.setup.causal { rows[asked.start + i] } else { 0 };
            queries.visit(ring, asked.len(), &|i| first(i)..usize::MAX, see);
        });
        add_records(self.setup, tokens.keys, &records, parameters);
        for (e, row) in rows.iter().enumerate() {
            sums.of_keys.row_mut(*row).zip_mut_with(&own[0].row(e), |sum, v| *sum += *v);
            sums.of_values.row_mut(*row).zip_mut_with(&own[1].row(e), |sum, v| *sum += *v);
        }
    }
}

/// Where what is recorded of tokens goes, if parameters are asked for.
fn records<T: Real>(
    tokens: &Numbers<'_, T>,
    features: usize,
    parameters: &Asked<'_, '_, T>,
) -> Option<Records<T>> {
    parameters.is_some().then(|| Records::new(tokens.nrows(), tokens.ncols(), features))
}

fn add_records<T: Real>(
    setup: Setup<'_, T>,
    tokens: Numbers<'_, T>,
    records: &Option<Records<T>>,
    parameters: &mut Asked<'_, '_, T>,
) {
    if let (Some(records), Some(parameters)) = (records, parameters) {
        parameters.add(setup.asking(), setup.reading, tokens, records);
    }
}

/// Gradients of keys and of values, to which one part after the other is added.
pub(in super::super) struct KeySums<'a, T> {
    pub of_keys: ArrayViewMut2<'a, T>,
    pub of_values: ArrayViewMut2<'a, T>,
    /// Whether all are 0 yet.
    pub fresh: bool,
}

impl<T: Real> KeySums<'_, T> {
    /// Adds what `write` writes over zeros.
    pub fn add(&mut self, write: impl FnOnce([ArrayViewMut2<'_, T>; 2])) {
        let KeySums { of_keys, of_values, fresh } = self;
        if std::mem::take(fresh) {
            return write([of_keys.view_mut(), of_values.view_mut()]);
        }
        let mut part = [of_keys.dim(), of_values.dim()].map(Array2::zeros);
        write(part.each_mut().map(|part| part.view_mut()));
        *of_keys += &part[0];
        *of_values += &part[1];
    }
}

/// Queries that keys sum up: with the features φ/N and the values \[g, −g·o\].
pub(in super::super) struct Summed<'a, T> {
    queries: Numbers<'a, T>,
    values: Array2<T>,
    /// Those that have an output.
    mask: Array1<bool>,
    kept: &'a Array2<f64>,
}

impl<'a, T: Real> Summed<'a, T> {
    pub fn new(queries: Numbers<'a, T>, upstream: ArrayView2<'_, T>, kept: &'a Array2<f64>) -> Self {
        let targets = upstream.ncols();
        let mut values = Array2::zeros((upstream.nrows(), targets + 1));
        values.slice_mut(s![.., ..targets]).assign(&upstream);
        let products = values.column_mut(targets).into_iter().zip(kept.column(1));
        products.for_each(|(own, product)| *own = T::narrow(-product));
        Summed { queries, values, mask: kept.column(2).mapv(|has| has != 0.0), kept }
    }

    pub fn run(&self) -> KeyRun<'_, T> {
        let (mask, shifts) = (Some(self.mask.view()), Some(self.kept.column(0)));
        KeyRun { keys: self.queries.reborrow(), values: Numbers::Own(self.values.view()), mask, shifts }
    }
}

/// Gradients of keys and of their values.
pub(in super::super) fn pulls_of_keys<'a, T: Real>(
    keys: KeyRun<'a, T>,
    [gradients, of_values]: [ArrayViewMut2<'a, T>; 2],
    record: Option<Box<Record<'a, T>>>,
) -> Pulls<'a, T> {
    let role = Role::Keys { values: keys.values, mask: keys.mask, of_values };
    Pulls { tokens: keys.keys, gradients, role, record }
}

fn scan_of_keys<'a, T: Real>(
    keys: KeyRun<'a, T>,
    queries: KeyRun<'a, T>,
    (out, record): ([ArrayViewMut2<'a, T>; 2], Option<Box<Record<'a, T>>>),
    lag: Lag,
) -> Scan<'a, T> {
    let out = Outlet::Pulls(pulls_of_keys(keys, out, record));
    let asker = Asker { queries: keys.keys, out, origin: [0; 3], place: 0 };
    Scan { keys: queries, askers: vec![asker], lag }
}
