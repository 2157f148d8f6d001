import SynheartAuth

// The samples of MovingToAnotherHost.md, in its order. DocumentationTests compares the page with this file.

enum MovingToAnotherHost {
    static func configure() throws {
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.net")
        configuration.aliases = [try RequestOrigin("https://auth.example.com")]
        try SynheartAuth.shared.configure(configuration)
    }
}
