// The Android Gradle plugin compiles Kotlin by itself, with this compiler in place of the older one that it comes with.
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
