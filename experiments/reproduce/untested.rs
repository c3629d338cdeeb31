//! What of the papers cannot be tested here.

/// What papers measure on private data or at a scale beyond two cores.
pub const TEXT: &str = "
# What cannot be run here

| Experiment | Mechanism | What stands in | What stays untested |
|---|---|---|---|
| Hybrid Random Features, Table 2: speech (LibriSpeech) | cluster and angular hybrids in the attention of a Conformer | [hybrid-table-2](#hybrid-table-2): a model of characters with the same mechanisms and sizes | word error rates |
| Hybrid Random Features, Tables 4 and 5, Figure 10: Penn Treebank, WikiText2 | hybrids that propose classes of a language model | [hybrid-tables-4-5](#hybrid-tables-4-5): synthetic embeddings; [hybrid-figure-10](#hybrid-figure-10): a log-bilinear model of the words of the New Testament | the LSTM, its embeddings and its perplexity |
| Hybrid Random Features, Figure 4, Appendix K: robotics | angular hybrids in the attention of policies, at tokens of norm 1 | none for policies, which need their simulators; errors at norm 1 in [hybrid-figure-2](#hybrid-figure-2) | rewards of policies |
| Chefs' Random Tables, Section 9.10: GLUE, speech (LibriSpeech), vision (ViT) | FAVOR++ (OPRF) in attention | [chefs-table-4](#chefs-table-4), [chefs-table-7](#chefs-table-7): the same features in classification; [performers-figure-4](#performers-figure-4): their errors in attention | accuracy of trained models |
| Chefs' Random Tables, Table 18, and Performers, Figure 19: Long Range Arena | FAVOR+ and FAVOR++ in attention over 1,000 to 4,000 places | [chefs-table-18](#chefs-table-18): nested lists of at most 48 characters | the five tasks at their length: documents, images and paths |
| Simplex Random Features, Figure 9: ImageNet (ViT) | simplex frequencies in attention | [simplex-figure-9](#simplex-figure-9): a model of characters; [simplex-figure-8](#simplex-figure-8): classification of small data sets | accuracy of a vision transformer |
| Performers, Figures 6, 10 to 13 and 16 to 18: TrEMBL, concatenated proteins | FAVOR+ and ReLU features in models of proteins | [performers-figure-16](#performers-figure-16), [performers-figure-10](#performers-figure-10): a model of characters; times over long sequences in [performers-figure-3](#performers-figure-3) | models of 36 layers, training over 100,000 steps, the similarity of amino acids (Figure 13) |
| Performers, Figures 5 and 15: LM1B, PG-19; Figure 7: ImageNet64 | FAVOR+ with and without redraws | [performers-figure-5](#performers-figure-5), [performers-figure-15](#performers-figure-15): a model of characters | perplexity at scale |
";
