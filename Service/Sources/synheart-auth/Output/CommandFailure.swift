import ArgumentParser

/// Ends a command with a sentence on standard error and an exit code that tells a program why.
struct CommandFailure: Error, CustomStringConvertible {
    enum Kind: Int32 {
        /// What was asked does not hold: refused, not found.
        case refused = 1
        /// It could not be found out.
        case impossible = 2
    }

    let kind: Kind
    let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Says the sentence on standard error.
    ///
    /// - Returns: the exit code.
    func tell() -> Int32 {
        StandardError.print("synheart-auth: " + description.withoutControls)
        return kind.rawValue
    }
}

extension AsyncParsableCommand {
    /// Runs a command's work; whatever it throws becomes one sentence and an exit code. Without a standard output to say what
    /// was done, nothing is done.
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

/// Does some work and then lets go of what it used, whether the work was done or threw.
func closing(_ close: () async -> Void, _ work: () async throws -> Void) async throws {
    do { try await work() } catch {
        await close()
        throw error
    }
    await close()
}
