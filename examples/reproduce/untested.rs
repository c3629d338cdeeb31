//! What of the papers cannot be tested here.

/// Experiments on private data or at a scale beyond two cores.
pub const TEXT: &str = "
# What cannot be run here

| Experiment | Mechanism | What stands in | What stays untested |
|---|---|---|---|
| Hybrid Random Features: speech (LibriSpeech), robotics | angular and cluster hybrids in attention | errors on synthetic points; a model of characters | accuracy at scale |
| Chefs' Random Tables: GLUE, speech, text of long documents | FAVOR++ (OPRF) in attention | kernel ridge classification; a model of characters | accuracy at scale |
| Simplex Random Features: ImageNet (ViT) | simplex frequencies in attention | classification of small data sets; a model of characters | accuracy at scale |
| Performers: TrEMBL, PG-19, ImageNet64, concatenated proteins | FAVOR+ in attention | errors and times; a model of characters | perplexity at scale, training over thousands of steps |
";
