internal import AuthContract
internal import Bytes
internal import Crypto

/// A person's session at this node.
struct ConsoleSession: Sendable {
    /// The credential of the person. It is re-read for each request.
    let credentialID: String
    /// The first part of the token in each form of the session. No page outside the session can send it.
    fileprivate(set) var formToken: String
    let startedAt: UnixTime
    /// The time of the person's last request. Refreshes by the pages' script are ignored.
    var lastUsedAt: UnixTime
    /// The message about the last change; nil: there is no message, or its page has shown it.
    var notice: Notice?
    /// The numbers in the tokens of those forms that made a change. A token consists of `formToken` and a number.
    fileprivate(set) var usedNumbers: Set<String> = []

    /// The number of changes after which the token is replaced: forms of earlier pages are refused from then on.
    static let maximumNumbers = 64
    /// Seconds without a request after which a session ends.
    static let idleLimit: Int64 = 30 * 60
    /// Seconds after which a session always ends.
    static let limit: Int64 = 12 * 3600

    /// Whether the session has ended. It also ends if the clock is set back to before the session's last use.
    func hasEnded(at now: UnixTime) -> Bool {
        !(0..<Self.idleLimit).contains(now - lastUsedAt) || !(0..<Self.limit).contains(now - startedAt)
    }

    /// A token for the forms of one page. The token has a number, so that all forms of the page together make only one change.
    func newToken() -> String { formToken + "." + String(UInt64.random(in: 0...(.max)), radix: 36) }

    /// The number in the token of a form of this session; nil: the token is missing, malformed, of another session or replaced.
    func number(of token: String?) -> String? {
        guard let parts = token?.split(separator: ".", omittingEmptySubsequences: false), parts.count == 2,
            1...13 ~= parts[1].utf8.count, constantTimeEquals(Array(parts[0].utf8), Array(formToken.utf8))
        else { return nil }
        return String(parts[1])
    }
}

/// A page's message about a change that was made.
struct Notice: Sendable, Hashable {
    let sentence: String
    /// The commands that make the same change in a terminal.
    let commands: CallCommands
    /// The path of the page that shows the notice. Other pages, such as one in another tab, do not show it.
    let path: String
    let madeAt: UnixTime

    /// Seconds after which the notice is dropped, if its page was not opened.
    static let life: Int64 = 60
}

/// The sessions of this node, in memory: a restart ends all, and signing out ends one immediately.
///
/// They are not stored in an encrypted cookie for all nodes, because a copied cookie would then remain valid after the person
/// signed out.
final class ConsoleSessions: Sendable {
    /// The largest number of sessions of one credential. Another one ends the session that was used least recently.
    static let maximumOfCredential = 20
    /// The largest number of sessions in total. Only holders of credentials can reach it.
    static let maximum = 1000

    private let sessions = Locked<[[UInt8]: ConsoleSession]>([:])
    private let random: any RandomSource

    init(random: any RandomSource) { self.random = random }

    /// Starts a session with a new id, and returns the id: the value of the cookie. Only its hash is kept.
    func start(_ credentialID: String, at now: UnixTime) -> String {
        let id = Base64.url.encode(random.bytes(32))
        let session = ConsoleSession(
            credentialID: credentialID, formToken: Base64.url.encode(random.bytes(32)), startedAt: now, lastUsedAt: now)
        sessions.withLock { sessions in
            sessions = sessions.filter { !$0.value.hasEnded(at: now) }
            Self.makeRoom(in: &sessions, fewerThan: Self.maximumOfCredential) { $0.credentialID == credentialID }
            Self.makeRoom(in: &sessions, fewerThan: Self.maximum) { _ in true }
            sessions[Self.key(id)] = session
        }
        return id
    }

    private static func makeRoom(
        in sessions: inout [[UInt8]: ConsoleSession], fewerThan maximum: Int, where matches: (ConsoleSession) -> Bool
    ) {
        let mine = sessions.filter { matches($0.value) }.sorted { $0.value.lastUsedAt < $1.value.lastUsedAt }
        for (key, _) in mine.prefix(max(0, mine.count - maximum + 1)) { sessions[key] = nil }
    }

    /// The session with this id; nil: it has ended, or never existed.
    ///
    /// - Parameter prolongs: whether this use prolongs the session: false for a refresh by the script, and for a form whose
    ///   body is not read yet.
    func use(_ id: String, at now: UnixTime, prolongs: Bool) -> ConsoleSession? {
        sessions.withLock { sessions in
            let key = Self.key(id)
            guard let session = sessions[key] else { return nil }
            guard !session.hasEnded(at: now) else {
                sessions[key] = nil
                return nil
            }
            if prolongs { sessions[key]?.lastUsedAt = now }
            return session
        }
    }

    /// Sets or removes the message about the last change.
    func tell(_ notice: Notice?, in id: String) { sessions.withLock { $0[Self.key(id)]?.notice = notice } }

    /// Uses up the number of a form that makes a change. Returns false if the number was used before, or if the token was
    /// replaced or the session ended meanwhile.
    ///
    /// - Parameter session: the session that the token was checked against.
    func take(_ number: String, of session: ConsoleSession, in id: String) -> Bool {
        sessions.withLock { sessions in
            guard let current = sessions[Self.key(id)], current.formToken == session.formToken else { return false }
            return sessions[Self.key(id)]?.usedNumbers.insert(number).inserted ?? false
        }
    }

    /// Replaces the form token once `maximumNumbers` forms with it made a change. Do not call this after a refused
    /// change: the page with the refusal must keep a valid token.
    func renewToken(in id: String) {
        let next = Base64.url.encode(random.bytes(32))
        sessions.withLock { sessions in
            guard var current = sessions[Self.key(id)], current.usedNumbers.count >= ConsoleSession.maximumNumbers
            else { return }
            (current.formToken, current.usedNumbers) = (next, [])
            sessions[Self.key(id)] = current
        }
    }

    /// Makes the number of a form usable again after its change was refused.
    func giveBack(_ number: String, in id: String) {
        sessions.withLock { _ = $0[Self.key(id)]?.usedNumbers.remove(number) }
    }

    /// Ends one session.
    func end(_ id: String) { sessions.withLock { $0[Self.key(id)] = nil } }

    /// Ends all sessions of a credential at this node, and returns their number.
    func endAll(of credentialID: String) -> Int {
        sessions.withLock { sessions in
            let before = sessions.count
            sessions = sessions.filter { $0.value.credentialID != credentialID }
            return before - sessions.count
        }
    }

    private static func key(_ id: String) -> [UInt8] { Array(SHA256.hash(data: Array(id.utf8))) }
}
