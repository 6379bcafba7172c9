# Reproduces the figures of "Globally Gated Deep Linear Networks".
#
#   data -> gates -> theory and simulation -> numbers of a figure -> figure -> report
#
# snakemake --cores 8                                       all figures at the paper's sizes
# snakemake --cores 8 figures/fig1.pdf                      one of them
# snakemake --cores 2 --configfile config/quick.yaml        all figures at a reduced size
# snakemake --cores 8 report                                the verdicts and all figures on one page

from snakemake.utils import min_version

min_version("9.0")


report: "workflow/report/workflow.rst"


configfile: "config/config.yaml"
configfile: "config/figures.yaml"
configfile: "config/claims.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/gating.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/simulation.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        figure_files(),


rule report:
    input:
        REPORT,
