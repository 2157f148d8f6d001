// The Android Gradle plugin compiles Kotlin itself. This dependency replaces its compiler, which is older.
buildscript {
    repositories {
        google()
        mavenCentral()
    }
    dependencies { classpath(libs.kotlin.gradle.plugin) }
}

plugins {
    alias(libs.plugins.android.library) apply false
}
