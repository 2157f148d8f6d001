import AuthContract
import Testing

@testable import AuthService

@Suite("Cached verdicts")
struct VerdictCacheTests {
    private func question(_ number: Int) -> VerdictCache.Question {
        VerdictCache.Question(
            credential: "c", id: "\(number)",
            request: VerifyRequest(
                method: "GET", scheme: "https", authority: "a", path: "/", query: nil, headers: HeaderFields(),
                body: .bytes([])))
    }

    private func isRemembered(_ number: Int, _ memory: VerdictCache, at now: UnixTime) async -> Bool {
        let judged = Counter()
        _ = await memory.verdict(on: question(number), now: now) {
            await judged.count()
            return VerifyOutcome(.failure(Refusal(.nonceReplay, "judged")))
        }
        return await judged.value == 0
    }

    @Test("a verdict beyond the bound is given and not cached, until a minute has passed")
    func bounded() async {
        let memory = VerdictCache(maximum: 2)
        let now = UnixTime(1000)
        for number in 0..<3 { #expect(await isRemembered(number, memory, at: now) == false) }
        #expect(await isRemembered(0, memory, at: now))
        #expect(await isRemembered(1, memory, at: now + 59))
        #expect(await isRemembered(2, memory, at: now + 59) == false)
        #expect(await isRemembered(2, memory, at: now + 60) == false)
        #expect(await isRemembered(2, memory, at: now + 61))
    }

    @Test("a verdict is cached for a minute, and not used if the clock is set back")
    func generations() async {
        let memory = VerdictCache()
        let now = UnixTime(1000)
        _ = await isRemembered(0, memory, at: now)
        _ = await isRemembered(1, memory, at: now + 50)
        #expect(await isRemembered(1, memory, at: now + 109))
        #expect(await isRemembered(1, memory, at: now + 110) == false)
        #expect(await isRemembered(1, memory, at: now + 20) == false)
    }

    private actor Counter {
        private(set) var value = 0

        func count() { value += 1 }
    }
}
