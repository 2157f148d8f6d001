import Testing

@testable import SoftwareDevice

@Suite struct PaceTests {
    private func load(_ end: Fleet.Load.End, rate: Double? = nil, rotations: Int = 0) -> Fleet.Load {
        Fleet.Load(end: end, rate: rate, rotationPercent: rotations, question: .status)
    }

    @Test func `a load of n requests has n turns, each due immediately`() {
        var pace = Pace(load(.requests(2)))
        #expect(pace.turn(at: .seconds(5)) == .init(number: 0, due: .seconds(5)))
        #expect(pace.turn(at: .seconds(6)) == .init(number: 1, due: .seconds(6)))
        #expect(pace.turn(at: .seconds(7)) == nil)
    }

    @Test func `with a rate a turn is due at its time, however late it is asked for`() {
        var pace = Pace(load(.requests(10), rate: 4))
        #expect(pace.turn(at: .zero)?.due == .zero)
        #expect(pace.turn(at: .zero)?.due == .milliseconds(250))
        #expect(pace.turn(at: .seconds(9))?.due == .milliseconds(500))
    }

    @Test func `no turn begins after the load's time limit`() {
        var paced = Pace(load(.after(.seconds(1)), rate: 2))
        #expect(paced.turn(at: .zero) != nil)
        #expect(paced.turn(at: .zero) != nil)
        #expect(paced.turn(at: .zero) == nil)
        var late = Pace(load(.after(.seconds(1)), rate: 2))
        #expect(late.turn(at: .seconds(1)) == nil)
        var fast = Pace(load(.after(.seconds(1))))
        #expect(fast.turn(at: .milliseconds(999)) != nil)
        #expect(fast.turn(at: .seconds(1)) == nil)
    }

    @Test(arguments: [0, 1, 7, 50, 100]) func `the share of rotations is the requested percentage`(_ percent: Int) {
        let load = load(.requests(0), rotations: percent)
        #expect((0..<1000).count { load.isRotation($0) } == percent * 10)
    }
}
