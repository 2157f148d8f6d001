import ArgumentParser
import Foundation

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
}

extension AsyncParsableCommand {
    /// Runs a command's work; whatever it throws becomes one sentence and an exit code.
    func reporting(_ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch let exit as ExitCode {
            throw exit
        } catch let error as ValidationError {
            throw error
        } catch {
            let failure = error as? CommandFailure ?? CommandFailure(.impossible, "\(error)")
            FileHandle.standardError.write(Data("synheart-auth: \(failure.description)\n".utf8))
            throw ExitCode(failure.kind.rawValue)
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
