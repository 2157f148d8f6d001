import ArgumentParser

/// Ends a command with a sentence on standard error, and with an exit code that a program can read.
struct CommandFailure: Error, CustomStringConvertible {
    enum Kind: Int32 {
        /// Refused or not found.
        case refused = 1
        /// The command could not be carried out.
        case impossible = 2
    }

    let kind: Kind
    let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Prints the sentence to standard error.
    ///
    /// - Returns: the exit code.
    func tell() -> Int32 {
        StandardError.print("synheart-auth: " + description.withoutControls)
        return kind.rawValue
    }
}

extension AsyncParsableCommand {
    /// Runs a command's work, and turns an error into one sentence and an exit code. Rethrows exit codes, validation errors and
    /// interrupts. If standard output is closed, the command fails before its work.
    func reporting(_ work: () async throws -> Void) async throws {
        do {
            try StandardOutput.check()
            try await work()
        } catch let exit as ExitCode {
            throw exit
        } catch let error as ValidationError {
            throw error
        } catch let interrupted as Interrupted {
            throw interrupted
        } catch {
            let failure = error as? CommandFailure ?? CommandFailure(.impossible, "\(error)")
            throw ExitCode(failure.tell())
        }
    }
}

/// Runs work, and then its cleanup, even if the work throws.
func closing(_ close: () async -> Void, _ work: () async throws -> Void) async throws {
    do { try await work() } catch {
        await close()
        throw error
    }
    await close()
}
