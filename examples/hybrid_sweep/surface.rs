//! Surfaces over the angle and the norm: the mean squared error, and the error relative to the kernel.

use std::f64::consts::{LN_10, PI};
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::methods::{Method, Size};
use crate::plot::{self, Area, Drawn, INK, TEXT, TITLE, UNITS};

/// A method of one size.
pub struct Surface {
    pub method: Method,
    pub size: Size,
}

/// Those of Hybrid Random Features, Figure 1.
pub const SURFACES: [Surface; 3] = [
    Surface { method: Method::Trigonometric, size: Size { m: 10, n: 0 } },
    Surface { method: Method::Hyperbolic, size: Size { m: 10, n: 0 } },
    Surface { method: Method::Angular, size: Size { m: 10, n: 1 } },
];

/// The longest norm at which the MSE is shown.
pub const LONGEST: f64 = 5.0;

/// Decimal logarithms of a smaller MSE are those of rounding.
pub const ROUNDING: f64 = -20.0;

impl Surface {
    pub fn log_error(&self, angle: f64, r: f64) -> f64 {
        self.method.ln_relative_error(angle, r, self.size) / LN_10
    }

    pub fn log_mse(&self, angle: f64, r: f64) -> f64 {
        2.0 * (self.log_error(angle, r) + r * r * angle.cos() / LN_10)
    }
}

/// A quantity in bands of one colour each.
struct Quantity {
    name: &'static str,
    value: fn(&Surface, f64, f64) -> f64,
    /// Norms from 0 to this.
    longest: f64,
    /// The decimal logarithms between the first and the last band, and the height of a band.
    limits: Range<f64>,
    step: f64,
}

/// Bands: below the limits, between them, above them.
const QUANTITIES: [Quantity; 2] = [
    Quantity { name: "MSE", value: Surface::log_mse, longest: LONGEST, limits: -5.0..60.0, step: 5.0 },
    Quantity { name: "√MSE/K", value: Surface::log_error, longest: 2.0, limits: -2.0..3.0, step: 0.5 },
];

impl Quantity {
    fn bands(&self) -> usize {
        ((self.limits.end - self.limits.start) / self.step).round() as usize + 2
    }

    /// The band of a value.
    fn band(&self, value: f64) -> usize {
        let above = ((value - self.limits.start) / self.step).floor() + 1.0;
        above.clamp(0.0, (self.bands() - 1) as f64) as usize
    }

    /// The decimal logarithm below a band that is not the first.
    fn edge(&self, band: usize) -> f64 {
        self.limits.start + self.step * (band as f64 - 1.0)
    }

    fn colour(&self, band: usize) -> RGBColor {
        colour(band as f64 / (self.bands() - 1) as f64)
    }
}

/// Colours that grow lighter from 0 to 1, in print too (viridis).
fn colour(t: f64) -> RGBColor {
    const STOPS: [(f64, f64, f64); 5] = [
        (68.0, 1.0, 84.0),
        (59.0, 82.0, 139.0),
        (33.0, 145.0, 140.0),
        (94.0, 201.0, 98.0),
        (253.0, 231.0, 37.0),
    ];
    let place = t * (STOPS.len() - 1) as f64;
    let k = (place as usize).min(STOPS.len() - 2);
    let (a, b, part) = (STOPS[k], STOPS[k + 1], place - k as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Width and height of a panel, and the width of the scale of colours.
const PANEL: (u32, u32) = (460 * UNITS, 400 * UNITS);
const SCALE: u32 = 190 * UNITS;

/// Cells of a panel along the angle and along the norm.
const CELLS: (usize, usize) = (180, 160);

/// Draws a row for each quantity with a panel for each method.
pub fn draw(path: &Path) -> Result<(), String> {
    let size = (PANEL.0 * SURFACES.len() as u32 + SCALE, PANEL.1 * QUANTITIES.len() as u32);
    plot::save(size, path, |root| {
        for (quantity, row) in QUANTITIES.iter().zip(root.split_evenly((QUANTITIES.len(), 1))) {
            let (panels, right) = row.split_horizontally(PANEL.0 * SURFACES.len() as u32);
            for (surface, area) in SURFACES.iter().zip(panels.split_evenly((1, SURFACES.len()))) {
                panel(quantity, surface, &area)?;
            }
            scale(quantity, &right)?;
        }
        Ok(())
    })
}

fn panel(quantity: &Quantity, surface: &Surface, area: &Area<'_>) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .margin(12 * UNITS)
        .margin_top(44 * UNITS)
        .x_label_area_size(52 * UNITS)
        .y_label_area_size(58 * UNITS)
        .build_cartesian_2d(0.0..180.0, 0.0..quantity.longest)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(INK.stroke_width(UNITS))
        .set_all_tick_mark_size(5 * UNITS)
        .x_labels(8)
        .x_label_formatter(&|x| format!("{x}"))
        .y_labels(6)
        .label_style(plot::font(TEXT))
        .axis_desc_style(plot::font(TEXT))
        .x_desc("θ in degrees")
        .y_desc("r")
        .draw()?;
    for run in runs(quantity, surface) {
        chart.plotting_area().draw(&run)?;
    }
    let Surface { method, size } = surface;
    let n = if size.n == 0 { String::new() } else { format!(", n = {}", size.n) };
    let title = format!("{} of {}, m = {}{n}", quantity.name, method.name(), size.m);
    let x = chart.plotting_area().get_x_axis_pixel_range();
    let middle = (x.start + x.end) / 2 - area.get_base_pixel().0;
    area.draw(&plot::text(&title, (middle, 24 * UNITS as i32), TITLE, HPos::Center))
}

/// Rectangles of one colour. Each reaches one cell further up and to the right than its cells, under those that come
/// later, so that no seam is left between neighbours.
fn runs(quantity: &Quantity, surface: &Surface) -> Vec<Rectangle<(f64, f64)>> {
    let (columns, rows) = CELLS;
    let x = |column: usize| 180.0 * column.min(columns) as f64 / columns as f64;
    let y = |row: usize| quantity.longest * row.min(rows) as f64 / rows as f64;
    let mut runs = Vec::new();
    for row in 0..rows {
        let r = 0.5 * (y(row) + y(row + 1));
        let band = |column: usize| {
            let angle = (column as f64 + 0.5) / columns as f64 * PI;
            quantity.band((quantity.value)(surface, angle, r))
        };
        let bands: Vec<usize> = (0..columns).map(band).collect();
        let mut start = 0;
        for run in bands.chunk_by(|a, b| a == b) {
            let end = start + run.len();
            let corners = [(x(start), y(row)), (x(end + 1), y(row + 2))];
            runs.push(Rectangle::new(corners, quantity.colour(run[0]).filled()));
            start = end;
        }
    }
    runs
}

/// The colours of the bands, with the values between them.
fn scale(quantity: &Quantity, area: &Area<'_>) -> Drawn {
    let unit = |pixels: f64| (pixels * f64::from(UNITS)).round() as i32;
    let height = 280.0 / quantity.bands() as f64;
    let bottom = |band: usize| unit(350.0 - height * band as f64);
    area.draw(&plot::text(quantity.name, (unit(20.0), unit(40.0)), TEXT, HPos::Left))?;
    for band in 0..quantity.bands() {
        // Up to the top, under those that come later: no seams.
        let corners = [(unit(20.0), bottom(quantity.bands())), (unit(50.0), bottom(band))];
        area.draw(&Rectangle::new(corners, quantity.colour(band).filled()))?;
        let edge = quantity.edge(band);
        // Whole powers of ten alone.
        if band > 0 && edge.fract() == 0.0 {
            area.draw(&plot::text(
                &plot::power(10f64.powf(edge)),
                (unit(58.0), bottom(band)),
                TEXT,
                HPos::Left,
            ))?;
        }
    }
    Ok(())
}
