pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositoriesMode = RepositoriesMode.FAIL_ON_PROJECT_REPOS
    repositories {
        google()
        mavenCentral()
    }
}

rootProject.name = "synheart-auth-android"
include(":synheart-auth", ":synheart-auth-okhttp", ":synheart-auth-runtime", ":synheart-auth-testing")
