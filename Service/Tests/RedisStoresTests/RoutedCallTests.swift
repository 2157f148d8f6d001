import AuthService
import RESP
import Testing

@testable import RedisStores

@Suite("The replies to a routed call")
struct RoutedCallTests {
    private static let owner = RedisURL.Endpoint(host: "10.0.0.1", port: 7000)

    private static func text(_ action: RoutedCall.Action) -> String {
        switch action {
        case .answer(let reply): "answer \(reply)"
        case .ask(let endpoint): "ask \(endpoint)"
        case .load: "load"
        case .refuse(_, nil): "refuse"
        case .refuse(_, .dropRoute): "refuse, drop the route"
        case .refuse(_, .distrust): "refuse, distrust"
        case .refuse(_, .endSession): "refuse, end the session"
        }
    }

    private static let other = "ask 10.0.0.2:7001"
    private static let asked = "ASK 1 10.0.0.2:7001"

    /// Sequences of replies, and the actions that they cause. `+` is an ordinary answer. Every other reply is an error.
    @Test(arguments: [
        (["+"], ["answer simple(\"+\")"]),
        (["ERR no"], ["refuse"]), (["OOM full"], ["refuse"]), (["TRYAGAIN x"], ["refuse, distrust"]),
        (["BUSY x"], ["refuse"]),
        (["MOVED 1 10.0.0.2:7001"], ["refuse, drop the route"]), (["MOVED"], ["refuse, drop the route"]),
        (["CLUSTERDOWN x"], ["refuse, drop the route"]),
        (["READONLY x"], ["refuse, end the session"]), (["LOADING x"], ["refuse, end the session"]),
        (["MASTERDOWN x"], ["refuse, end the session"]), (["NOREPLICAS x"], ["refuse, end the session"]),
        (["UNKILLABLE x"], ["refuse, end the session"]), (["NOAUTH x"], ["refuse, end the session"]),
        ([asked, "+"], [other, "answer simple(\"+\")"]),
        (["ASK 1 :7001", "+"], ["ask 10.0.0.1:7001", "answer simple(\"+\")"]),
        (["ASK 1 x"], ["refuse, distrust"]), ([asked, asked], [other, "refuse, distrust"]),
        ([asked, "ERR no"], [other, "refuse"]),
        ([asked, "READONLY x"], [other, "refuse, end the session"]),
        ([asked, "MOVED 1 10.0.0.3:7002"], [other, "refuse, drop the route"]),
        (["NOSCRIPT x", "+"], ["load", "answer simple(\"+\")"]), (["NOSCRIPT x", "NOSCRIPT x"], ["load", "refuse"]),
        (["NOSCRIPT x", asked, "+"], ["load", other, "answer simple(\"+\")"]),
        ([asked, "NOSCRIPT x", asked, "+"], [other, "load", other, "answer simple(\"+\")"]),
        ([asked, "NOSCRIPT x", asked, asked], [other, "load", other, "refuse, distrust"]),
        (["NOSCRIPT x", "READONLY x"], ["load", "refuse, end the session"]),
    ])
    func `each reply has one consequence`(_ replies: [String], _ expected: [String]) {
        var call = RoutedCall(owner: Self.owner, followsAsk: true, isScript: true)
        let actions = replies.map { Self.text(call.replied($0 == "+" ? .simple("+") : .error($0))) }
        #expect(actions == expected)
    }

    @Test func `a command that follows no ASK, or names no script, is not sent again`() {
        var call = RoutedCall(owner: Self.owner, followsAsk: false, isScript: true)
        #expect(Self.text(call.replied(.error(Self.asked))) == "refuse, distrust")
        call = RoutedCall(owner: Self.owner, followsAsk: true, isScript: false)
        #expect(Self.text(call.replied(.error("NOSCRIPT x"))) == "refuse")
    }

    @Test
    func `in every sequence of replies a command is sent again only if it was not executed, and at most three times`() {
        var random = SeededNumbers(seed: 7)
        let replies: [RESPValue] = [
            .integer(0), .integer(1), .null, .error("NOSCRIPT x"), .error(Self.asked), .error("ASK 1 10.0.0.3:7002"),
            .error("MOVED 1 10.0.0.2:7001"), .error("READONLY x"), .error("TRYAGAIN x"), .error("ERR no"),
            .error("NOSCRIPT"), .error("ASK"), .error("MASTERDOWN x"), .error("CLUSTERDOWN x"),
        ]
        for _ in 0..<20_000 {
            var call = RoutedCall(owner: Self.owner, followsAsk: Bool.random(using: &random), isScript: true)
            var (sent, isOver) = (1, false)
            while !isOver {
                // Replies that cause another command are drawn more often.
                let reply =
                    random.oneIn(3)
                    ? replies.randomElement(using: &random) ?? .null : replies[Int.random(in: 3...5, using: &random)]
                switch call.replied(reply) {
                case .answer(let answer):
                    #expect(answer == reply)
                    isOver = true
                case .refuse: isOver = true
                case .ask, .load:
                    guard case .error(let text) = reply else { return #expect(Bool(false), "\(reply) was no refusal") }
                    #expect(["ASK", "NOSCRIPT"].contains(RedisError(text).code))
                    sent += 1
                    #expect(sent <= 4)
                    isOver = sent > 4
                }
            }
        }
    }
}
