import AuthService
import Testing

@testable import PostgreSQLStores

@Suite("The newest timeline")
struct TimelineGuardTests {
    @Test func `each newer timeline counts once as a failover, also one that another node met`() throws {
        let timeline = TimelineGuard()
        func place(_ number: Int64, system: String = "7") -> PrimaryPlace {
            PrimaryPlace(system: system, timeline: number)
        }
        timeline.learn(place(9))
        for number in [3, 3] as [Int64] { try timeline.admit(place(number)) }
        #expect(timeline.failovers == 0)
        try timeline.admit(place(4))
        timeline.learn(place(6))
        try timeline.admit(place(6))
        #expect(timeline.failovers == 2)
        for other in [place(5), place(7, system: "8")] {
            #expect(throws: StoreError.self) { try timeline.admit(other) }
            timeline.learn(other)
        }
        #expect(timeline.failovers == 2)
    }
}
