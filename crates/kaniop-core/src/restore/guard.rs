//! The conditions without which a step is not taken, each with a name: so that a test can leave out one at a time and see that it was needed.
//!
//! In the product all of them hold, always: [`Guards::ALL`] is a constant.

macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A condition without which a step is not taken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Guard {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Guard {
            /// Every guard.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)+];
        }
    };
}

guards! {
    /// The Kanidm is the one whose UID the request names.
    SameTarget,
    /// A claim is taken from nobody, or from a restore that is over; never from one that is under way.
    ClaimIsFree,
    /// A claim that is gone while the cluster's controller still knows it is not for others to take.
    MaintenanceIsOver,
    /// A step is taken only by the restore that has the claim.
    ClaimIsOurs,
    /// Nothing is stopped or changed before the cluster's controller has acknowledged the claim.
    Acknowledged,
    /// All StatefulSets are at zero before a volume is worked on.
    ScaledToZero,
    /// Nobody has a volume before a Job gets it.
    VolumesAreFree,
    /// The backup is proven while everything can still be undone.
    SourceIsProven,
    /// That the database may be changed is persisted before the Job that does it is made.
    MutationIsPersisted,
    /// After a failed restore its successor counts as having changed the database from the first.
    LatchIsInherited,
    /// The restore Job has said that the old database is out of the way: else what is read back could be that.
    RestoreHasAnswered,
    /// What was restored is compared with the backup; that the Job ended says nothing.
    RestoredIsProven,
    /// The mark on the volume is removed only by the Job that says so.
    MarkIsRemoved,
    /// No other node starts while a volume from before the restore is there.
    ReplicasAreCleared,
    /// A volume is discarded only if its UID is in the plan.
    OnlyPlannedVolumes,
    /// The other nodes start only when the primary serves the restored domain.
    PrimaryServesFirst,
    /// A restore is complete only when every node serves the restored domain.
    EveryNodeServes,
    /// A restore is complete only when the credentials are new and work.
    CredentialsAreRenewed,
    /// That the claim may go is persisted before it goes.
    ReleaseIsPersisted,
    /// A failure before the mutation puts the counts back.
    CountsArePutBack,
    /// A failure before the mutation frees the claim before it is told.
    ClaimIsFreed,
    /// A failure after the mutation keeps the claim and the servers down.
    StaysOffline,
    /// After a forced release too, the mark goes first and the other volumes are discarded.
    ForcedStillClears,
    /// The object stays until its end leaves nothing half done.
    FinalizerStays,
    /// The finalizer is there before anything is touched.
    FinalizerFirst,
    /// Every wait ends.
    WaitsEnd,
}

/// Which guards hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guards {
    off: Option<Guard>,
}

impl Guards {
    /// All of them.
    pub(crate) const ALL: Self = Self { off: None };

    /// All but one: to show that the model needs it.
    #[cfg(test)]
    pub(crate) const fn without(guard: Guard) -> Self {
        Self { off: Some(guard) }
    }

    /// Whether the step may be taken as far as this guard goes.
    pub(crate) fn allow(self, guard: Guard, holds: bool) -> bool {
        holds || self.off == Some(guard)
    }
}
