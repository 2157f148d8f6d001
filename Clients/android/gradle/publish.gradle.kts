// Publishes a module as Maven Central wants it: AAR, sources, documentation, POM and Gradle's own metadata, signed if there is a key.
//
//   gradle publish                  into build/maven of the module
//   ORG_GRADLE_PROJECT_signingKey, ORG_GRADLE_PROJECT_signingPassword: an OpenPGP key in ASCII armour; without one nothing is signed
//
// The module sets its description, and the name of its component in the extra property `publishedComponent`.
apply(plugin = "maven-publish")
apply(plugin = "signing")

val publishing = extensions.getByType<PublishingExtension>()
publishing.repositories {
    maven {
        name = "folder"
        url = uri(layout.buildDirectory.dir("maven"))
    }
}
publishing.publications.register<MavenPublication>("library") {
    groupId = "ai.synheart"
    artifactId = project.name
    version = providers.gradleProperty("VERSION_NAME").get()
    // The Android Gradle plugin creates its components late.
    afterEvaluate { from(components[project.extra["publishedComponent"] as String]) }
    pom {
        name = project.name
        description = provider { project.description }
        url = "https://github.com/synheart-ai/synheart-auth"
        licenses {
            license {
                name = "Apache-2.0"
                url = "https://www.apache.org/licenses/LICENSE-2.0.txt"
                distribution = "repo"
            }
        }
        developers {
            developer {
                id = "synheart-ai"
                name = "Synheart"
                url = "https://github.com/synheart-ai"
            }
        }
        scm {
            connection = "scm:git:https://github.com/synheart-ai/synheart-auth.git"
            url = "https://github.com/synheart-ai/synheart-auth"
        }
    }
}

val signingKey = providers.gradleProperty("signingKey").orNull
if (signingKey != null) {
    extensions.configure<SigningExtension> {
        useInMemoryPgpKeys(signingKey, providers.gradleProperty("signingPassword").orNull)
        sign(publishing.publications)
    }
}
