/// A rule of the protocol that a program can check from outside.
struct ConformanceCase: ListedCase {
    /// The name on the command line and in results. It does not change between versions.
    let id: String
    /// The heading of `docs/protocol.md` that has the rule.
    let section: String
    /// The statement that the case checks.
    let sentence: String
    /// Plays the case. Returns if the rule holds. Throws a `CaseEnd` if it does not, or if the case is skipped.
    let run: @Sendable (Stage) async throws -> Void

    /// Memberwise initializer.
    init(
        _ id: String, _ section: String, _ sentence: String, _ run: @escaping @Sendable (Stage) async throws -> Void
    ) {
        (self.id, self.section, self.sentence, self.run) = (id, section, sentence, run)
    }

    /// All cases, in the order in which they run.
    static let all: [ConformanceCase] = [
        clients, answers, bodies, paths, challenges, appleRegistrations, googleRegistrations, repeatedRegistrations,
        signatures,
        signatureForms, schemeTwo, replays, rotations, assertions, tokens, verifications, access, nodes, backends,
    ].flatMap { $0 }
}

/// The end of a case that failed or was skipped.
enum CaseEnd: Error {
    /// The rule does not hold.
    case fails(String)
    /// The case cannot be played with this service, client and options, or not in the time that the options allow.
    case skipped(String)
}

/// The result of one case.
struct CaseResult: Sendable {
    enum State: String, Sendable { case holds, fails, skipped }

    let state: State
    /// The reason why the case failed or was skipped; empty if it passed.
    let reason: String
    /// The last requests and answers; empty unless the case failed.
    let exchanges: [Exchange]
}

extension ConformanceCase {
    /// Plays the case on its own stage. An error other than `CaseEnd`, such as a missing answer, is a failure of the case.
    func result(on stage: Stage) async -> CaseResult {
        let stage = stage.forOneCase
        do {
            try await run(stage)
            return CaseResult(state: .holds, reason: "", exchanges: [])
        } catch CaseEnd.skipped(let reason) {
            return CaseResult(state: .skipped, reason: reason, exchanges: [])
        } catch CaseEnd.fails(let reason) {
            return CaseResult(state: .fails, reason: reason, exchanges: stage.trace.exchanges)
        } catch {
            return CaseResult(state: .fails, reason: "\(error)", exchanges: stage.trace.exchanges)
        }
    }
}
