# Reproduces the figures of "Globally Gated Deep Linear Networks".
#
#   data -> gates -> theory and simulation -> curve -> numbers of a figure -> figure -> verdicts and report
#
# snakemake --cores 8                                           all figures at the paper's sizes
# snakemake --cores 8 figures/fig1.pdf                          one of them
# snakemake --cores 2 --configfile config/quick.yaml            all figures at a reduced size
# snakemake --cores 8 report                                    the verdicts and all figures on one page
# snakemake --cores 8 calibrate                                 which of the values that the paper leaves open fit it best
# snakemake figures/mine.pdf --cores 4 --configfile mine.yaml   a figure of one's own; without it, all figures of mine.yaml
#
# The configuration is config/config.yaml, figures.yaml, claims/*.yaml and calibration.yaml, to which --configfile adds. They are read here and not
# by a `configfile:` line, so that a mistake is told with its line and column. --configfile takes all words up to the next
# option, so that targets stand before it.

from snakemake.utils import min_version

min_version("9.0")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/stages.smk"


rule all:
    default_target: True
    input:
        figure_files(),


rule unknown_figure:
    # Answers for every figure that there isn't.
    input:
        refuse_unknown,
    output:
        "figures/{wanted}",
    wildcard_constraints:
        wanted=STAGES.unknown_figures(),


rule calibrate:
    input:
        STAGES.table["weigh_choices"].main,


rule report:
    input:
        STAGES.table["make_report"].main,
