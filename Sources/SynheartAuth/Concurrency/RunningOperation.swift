/// A running operation of an identity. It belongs to the actor that began it.
final class RunningOperation<Value: Sendable> {
    /// An operation runs in a task of its own, so that it survives the cancellation of its callers.
    typealias Work = Task<Result<Value, SynheartAuthError>, Never>

    let work: Work
    let backOff: BackOff
    /// The purpose, if the operation is a rotation.
    let goal: RotationGoal
    /// The rotation that has taken the place of this one.
    var successor: RunningOperation?

    init(_ work: Work, _ backOff: BackOff, goal: RotationGoal = RotationGoal()) {
        (self.work, self.backOff, self.goal) = (work, backOff, goal)
    }
}
