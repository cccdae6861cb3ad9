"""The Spark hosts: scan, batch and streaming, each beside a Spark pipeline that detects nothing."""

from benchmarks.options import Options
from benchmarks.report import Report


def run(options: Options) -> Report:
    """Measure the parts asked for: scan, batch, streaming."""
    from benchmarks.spark.batch import measure_batch
    from benchmarks.spark.pipelines import CORES, session
    from benchmarks.spark.scan import measure_scan
    from benchmarks.spark.streaming import measure_streaming

    report = Report("spark_hosts", "the Spark hosts", options.quick)
    options.data.mkdir(parents=True, exist_ok=True)
    report.parameters |= {"master": f"local[{CORES}]"}
    spark = session(options.data)
    report.parameters["settings"] = {
        name: spark.conf.get(name)
        for name in ("spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionBytes")
    }
    try:
        for name, part in {
            "scan": measure_scan,
            "batch": measure_batch,
            "streaming": measure_streaming,
        }.items():
            if options.wants(name):
                try:
                    part(spark, report, options)
                except Exception as error:  # the other hosts are still worth their time
                    report.failed(name, error)
    finally:
        spark.stop()
    return report
