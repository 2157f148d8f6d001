/// The build.
package enum Build {
    /// The version, by semantic versioning.
    package static let version = "0.1.0"
}
