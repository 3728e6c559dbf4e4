//! Condition types of kinds that OLM reads but does not define: Kubernetes, cert-manager, OpenShift and operators.

use crate::texts::texts;

texts! {
    /// Conditions of a CustomResourceDefinition.
    Crd {
        /// The API server serves the kind.
        Established,
        /// No other CRD has the names of the kind.
        NamesAccepted,
        /// The API server deletes the CRD and its objects.
        Terminating,
    }
}

texts! {
    /// Conditions of an `APIService`.
    ApiService {
        /// The API server reaches the server of the group and version.
        Available,
    }
}

texts! {
    /// Conditions of workloads, such as Deployments and Jobs.
    Workload {
        /// Enough replicas are available.
        Available,
        /// Pods cannot be created: a quota or an admission webhook refuses them.
        ReplicaFailure,
        /// The Job has failed.
        Failed,
    }
}

texts! {
    /// Conditions of a Pod.
    Pod {
        /// A node is chosen.
        PodScheduled,
        /// All containers are ready.
        ContainersReady,
        /// The pod is ready: its containers and its readiness gates.
        Ready,
    }
}

texts! {
    /// Conditions of a Node that lacks a resource.
    NodePressure {
        /// A disk is almost full.
        DiskPressure,
        /// Memory is scarce.
        MemoryPressure,
        /// Process ids are scarce.
        PIDPressure,
    }
}

texts! {
    /// Conditions of cert-manager's Certificates and Issuers.
    CertManager {
        /// The certificate is issued, or the issuer can sign.
        Ready,
    }
}

texts! {
    /// Conditions of OpenShift's `ClusterOperators`.
    ClusterOperator {
        /// The operator allows an upgrade of the cluster's minor version.
        Upgradeable,
    }
}

texts! {
    /// Conditions by which an operator speaks to OLM, on an `OperatorCondition` of OLM Classic or on an object of its own.
    Operator {
        /// The operator permits that another version replaces it.
        Upgradeable,
    }
}
