/// The facts about this build of the service.
package enum Build {
    /// The version, by semantic versioning. `Checks/documentation/version.py` compares the version of every package
    /// with it.
    package static let version = "1.0.0"
}
