import AuthContract
import StoreConformance
import Testing

@testable import AuthService

@Suite("The filter of known ids")
struct KnownIDsTests {
    private func ids(_ count: Int, seed: UInt64) -> [DeviceID] {
        let random = SeededRandom(seed: seed)
        return (0..<count).map { _ in DeviceID(from: random) }
    }

    @Test("every id that was added is known, also after the filter grew, and fewer than one stranger in 50 is")
    func growing() {
        var known = KnownIDs()
        let members = ids(KnownIDs.smallest * 3 + 1000, seed: 1)
        for id in members { known.insert(id) }
        #expect(members.allSatisfy(known.contains))
        // Each of the filter's three layers, when it is full, wrongly contains 0.3 % of all other ids.
        #expect(ids(50_000, seed: 2).count(where: known.contains) < 1000)
    }

    @Test("an id that is added again takes no room")
    func repeated() {
        var known = KnownIDs(maximum: KnownIDs.smallest)
        let (member, strangers) = (ids(1, seed: 3)[0], ids(1000, seed: 4))
        for _ in 0...KnownIDs.smallest { known.insert(member) }
        #expect(known.contains(member))
        #expect(!strangers.allSatisfy(known.contains))
    }

    @Test("more ids than the filter holds make every id known, and never a device unknown")
    func overfull() {
        var known = KnownIDs(maximum: KnownIDs.smallest)
        let members = ids(KnownIDs.smallest + 1000, seed: 5)
        for id in members { known.insert(id) }
        #expect(members.allSatisfy(known.contains))
        #expect(ids(100, seed: 6).allSatisfy(known.contains))
    }

    @Test("an empty filter knows nothing")
    func empty() { #expect(!ids(1000, seed: 7).contains(where: KnownIDs().contains)) }
}
