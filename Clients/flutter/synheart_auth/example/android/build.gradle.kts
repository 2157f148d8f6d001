allprojects {
    repositories {
        google()
        mavenCentral()
        // The Kotlin module, published from a clone: `gradle publishToMavenLocal` in Clients/android.
        mavenLocal { content { includeGroup("ai.synheart") } }
    }
}

// The Flutter tool expects build results in the folder `build` of the Flutter project.
val flutterBuild: Directory = rootProject.layout.projectDirectory.dir("../build")
rootProject.layout.buildDirectory.set(flutterBuild)
subprojects {
    layout.buildDirectory.set(flutterBuild.dir(name))
    evaluationDependsOn(":app")
}

tasks.register<Delete>("clean") { delete(rootProject.layout.buildDirectory) }
