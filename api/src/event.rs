//! Types and reasons of the events that the controllers emit.

use crate::texts::texts;

texts! {
    /// Type of an event.
    Type {
        /// An event for information.
        Normal,
        /// An event about a problem.
        Warning,
    }
}

texts! {
    /// Reason of an event.
    Reason {
        /// A bundle is installed for the first time.
        Installed,
        /// Another version is installed.
        Upgraded,
        /// A deleted extension is gone; the message says what stays.
        Uninstalled,
        /// A bundle was chosen and a revision created.
        Resolved,
        /// The extension moved to another catalog.
        CatalogMoved,
        /// A revision rolls out again after something held it up; a new revision has the event `Resolved`.
        RollingOut,
        /// An error that may pass; the controller retries.
        Retrying,
        /// An error that only a change of the object resolves.
        Blocked,
        /// `spec.config` does not fit the bundle.
        InvalidConfiguration,
        /// A plan waits for its approval.
        AwaitingApproval,
        /// A plan waits for a window.
        AwaitingWindow,
        /// The installed operator holds its upgrade.
        HeldByOperator,
        /// An approved plan is rolled out; the note names the field manager that approved it.
        Approved,
        /// The extension is paused.
        Paused,
        /// The extension is no longer paused.
        Resumed,
        /// The rollout exceeded its deadline.
        ProgressDeadlineExceeded,
        /// A new revision is available, and must stay so for `spec.rollout.soak`.
        Soaking,
        /// A new revision did not stay available for `spec.rollout.soak`.
        SoakFailed,
        /// The content of a former revision is rolled out again; the note names both versions and the cause.
        RolledBack,
        /// The version that was rolled back is tried again, or the extension follows its source again.
        RollBackEnded,
        /// The probes pass again.
        Available,
        /// A probe of the installed revision fails.
        Degraded,
        /// The spec holds a successor back.
        UpgradeAvailable,
        /// Support of the installed version ends within 90 days.
        SupportEndingSoon,
        /// Support of the installed version has ended.
        SupportEnded,
        /// The installed version is supported for more than 90 days again.
        SupportRestored,
        /// An unread catalog was left out.
        CatalogLeftOut,
        /// Former content of a catalog was read.
        CatalogFormerContent,
        /// The catalogs are read again.
        CatalogsRecovered,
        /// A waiver of CRD findings matches no change.
        WaiverUnused,
        /// A CRD no longer serves a version.
        ServedVersionRemoved,
        /// Stored objects were not validated against a new schema.
        StoredObjectsNotChecked,
        /// Objects that others changed or deleted are restored.
        DriftRepaired,
        /// Objects with names that no API server accepts were skipped during a teardown.
        ObjectsPassedOver,
        /// `ClusterRole`s for custom resources were not added to the objects of a bundle.
        CrdRolesLeftOut,
        /// A CRD stays, because it holds custom resources.
        CustomResourcesKept,
        /// A namespace that was created with its extension stays, because it holds objects of others.
        NamespaceKept,
        /// A reconcile of a ClusterObjectSet failed.
        ReconcileFailed,
        /// Objects of a kind are not watched.
        WatchFailing,
        /// The objects are watched again.
        WatchRestored,
        /// The extension blocks an upgrade of the cluster.
        ClusterUpgradeBlocked,
        /// The extension no longer blocks an upgrade of the cluster.
        ClusterUpgradeUnblocked,
        /// A catalog image was pulled.
        Pulled,
        /// A catalog was stored.
        Unpacked,
        /// The content of a catalog is served.
        Serving,
        /// The content of a catalog is not served.
        Unavailable,
        /// Stored content is damaged; catalogd pulls the image again.
        ContentDamaged,
        /// A catalog image cannot be pulled.
        PullFailed,
        /// A catalog cannot be stored.
        UnpackFailed,
        /// The content of a catalog cannot be removed.
        RemoveFailed,
        /// The shutdown of catalogd interrupted a pull.
        Interrupted,
    }
}
