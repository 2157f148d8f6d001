import Dispatch
import Glibc

/// The process: its standard streams, the command and its exit code.
@main
enum Program {
    // Not `async`: the concurrency runtime opens files before an asynchronous `main` begins, and they would get the
    // descriptors of standard streams that the caller closed.
    static func main() {
        StandardStreams.prepare()
        Interrupts.cancelling(Task { exit(await SynheartAuthCommand.runToExitCode()) })
        dispatchMain()
    }
}
