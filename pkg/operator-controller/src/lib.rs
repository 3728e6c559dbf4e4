//! The extension manager: ClusterExtension and ClusterObjectSet controllers.
