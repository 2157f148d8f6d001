import SynheartAuth

// The samples of MovingToAnotherHost.md, in its order. DocumentationTests holds the page against this file.

enum MovingToAnotherHost {
    static func configure() throws {
        var configuration = try SynheartAuth.Configuration(baseUrl: "https://auth.example.net")
        configuration.aliases = [try RequestOrigin("https://auth.example.com")]
        try SynheartAuth.shared.configure(configuration)
    }
}
