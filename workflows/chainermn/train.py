"""One rank of a data-parallel training with ChainerMN; launch.py starts all of them.

The processes of a pipeline are children of a server that is started before MPI: a process that
uses InfiniBand must not fork (ChainerMN's documentation, "Tips and FAQs"; so did the paper's). They
import this module, which therefore imports nothing at its head.
"""


def main() -> None:
    """Start the server, then MPI and all the rest."""
    import multiprocessing

    multiprocessing.set_start_method("forkserver")
    # what decodes comes with the server; the paper's processes had to import it
    multiprocessing.set_forkserver_preload(["numpy", "PIL.JpegImagePlugin", "burstlab.pipelines"])
    first = multiprocessing.Process()
    first.start()
    first.join()

    from chainer_framework import ChainerFramework

    from burstlab.training import rank

    rank.main("chainermn", ChainerFramework)


if __name__ == "__main__":
    main()
