//! OAuth2 clients: creation, maps, secrets and pictures. Their attributes can only be appended to and purged.

use std::collections::BTreeSet;

use axum::extract::{Multipart, Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use kanidmd_lib::prelude::*;
use kanidmd_lib::value::OauthClaimMapJoin;
use serde::Deserialize;

use super::entry;
use super::kind::Kind;
use super::operation;
use crate::http::caller::Caller;
use crate::http::error::{Answer, Failure};
use crate::http::{Routes, Shared, image};

const BASIC: &[EntryClass] =
    &[EntryClass::OAuth2ResourceServer, EntryClass::OAuth2ResourceServerBasic, EntryClass::Account, EntryClass::Object];
const PUBLIC: &[EntryClass] = &[
    EntryClass::OAuth2ResourceServer,
    EntryClass::OAuth2ResourceServerPublic,
    EntryClass::Account,
    EntryClass::Object,
];

/// The routes.
pub fn routes() -> Routes {
    Router::new()
        .merge(entry::list_only("/v1/oauth2", Kind::OAuth2))
        .merge(entry::creator("/v1/oauth2/_basic", BASIC))
        .merge(entry::creator("/v1/oauth2/_public", PUBLIC))
        .merge(entry::one("/v1/oauth2", Kind::OAuth2))
        .merge(entry::attributes("/v1/oauth2/{id}", Kind::OAuth2))
        .route("/v1/oauth2/{id}/_scopemap/{group}", post(set_scopes).delete(drop_scopes))
        .route("/v1/oauth2/{id}/_sup_scopemap/{group}", post(set_more_scopes).delete(drop_more_scopes))
        .route("/v1/oauth2/{id}/_claimmap/{claim}/{group}", post(set_claim).delete(drop_claim))
        .route("/v1/oauth2/{id}/_claimmap/{claim}", post(set_join))
        .route("/v1/oauth2/{id}/_basic_secret", get(secret))
        .route("/v1/oauth2/{id}/_image", post(set_image).delete(drop_image))
        .route("/v1/domain/_image", post(set_domain_image).delete(drop_domain_image))
}

type Texts = BTreeSet<String>;

async fn set_scopes(s: Shared, c: Caller, Path(path): Path<(String, String)>, Json(scopes): Json<Texts>) -> Answer<()> {
    map_scopes(s, c, path, Attribute::OAuth2RsScopeMap, scopes).await
}

async fn drop_scopes(s: Shared, c: Caller, Path(path): Path<(String, String)>) -> Answer<()> {
    unmap_scopes(s, c, path, Attribute::OAuth2RsScopeMap).await
}

async fn set_more_scopes(
    s: Shared,
    c: Caller,
    Path(path): Path<(String, String)>,
    Json(scopes): Json<Texts>,
) -> Answer<()> {
    map_scopes(s, c, path, Attribute::OAuth2RsSupScopeMap, scopes).await
}

async fn drop_more_scopes(s: Shared, c: Caller, Path(path): Path<(String, String)>) -> Answer<()> {
    unmap_scopes(s, c, path, Attribute::OAuth2RsSupScopeMap).await
}

/// Changes one client by something that depends on a group's UUID.
async fn change_by_group<F>(State(running): Shared, caller: Caller, id: &str, group: &str, change: F) -> Answer<()>
where
    F: FnOnce(Uuid) -> Result<Modify, OperationError> + Send,
{
    let target = Kind::OAuth2.one(id);
    let done: Result<(), OperationError> = running
        .engine
        .write(|w, now| {
            let ident = caller.identity(w, now)?;
            let group = w.qs_write.name_to_uuid(group)?;
            let changes = ModifyList::new_list(vec![change(group)?]);
            operation::modify_in(&mut w.qs_write, ident, &target, &changes)
        })
        .await;
    Ok(Json(done?))
}

async fn map_scopes(
    s: Shared,
    c: Caller,
    (id, group): (String, String),
    attribute: Attribute,
    scopes: Texts,
) -> Answer<()> {
    change_by_group(s, c, &id, &group, |group| {
        Value::new_oauthscopemap(group, scopes)
            .map(|value| Modify::Present(attribute, value))
            .ok_or_else(|| OperationError::InvalidAttribute("Invalid Oauth Scope Map syntax".to_owned()))
    })
    .await
}

async fn unmap_scopes(s: Shared, c: Caller, (id, group): (String, String), attribute: Attribute) -> Answer<()> {
    change_by_group(s, c, &id, &group, |group| Ok(Modify::Removed(attribute, PartialValue::Refer(group)))).await
}

async fn set_claim(
    s: Shared,
    c: Caller,
    Path((id, claim, group)): Path<(String, String, String)>,
    Json(values): Json<Texts>,
) -> Answer<()> {
    change_by_group(s, c, &id, &group, |group| {
        Value::new_oauthclaimmap(claim, group, values)
            .map(|value| Modify::Present(Attribute::OAuth2RsClaimMap, value))
            .ok_or_else(|| OperationError::InvalidAttribute("Invalid Oauth Claim Map syntax".to_owned()))
    })
    .await
}

async fn drop_claim(s: Shared, c: Caller, Path((id, claim, group)): Path<(String, String, String)>) -> Answer<()> {
    change_by_group(s, c, &id, &group, |group| {
        Ok(Modify::Removed(Attribute::OAuth2RsClaimMap, PartialValue::OauthClaim(claim, group)))
    })
    .await
}

/// How several values of a claim are joined.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Join {
    Csv,
    Ssv,
    Array,
}

async fn set_join(
    State(running): Shared,
    caller: Caller,
    Path((id, claim)): Path<(String, String)>,
    Json(join): Json<Join>,
) -> Answer<()> {
    let join = match join {
        Join::Csv => OauthClaimMapJoin::CommaSeparatedValue,
        Join::Ssv => OauthClaimMapJoin::SpaceSeparatedValue,
        Join::Array => OauthClaimMapJoin::JsonArray,
    };
    let set = Modify::Present(Attribute::OAuth2RsClaimMap, Value::OauthClaimMap(claim, join));
    operation::change(&running, &caller, Kind::OAuth2.one(&id), vec![set]).await
}

/// The secret in clear, for those who may read it; a public client has none, nor a missing one.
async fn secret(State(running): Shared, caller: Caller, Path(id): Path<String>) -> Answer<Option<String>> {
    let filter = Kind::OAuth2.one(&id);
    let secret: Result<_, OperationError> = running
        .engine
        .read(|r, now| {
            let ident = caller.identity(r, now)?;
            let event = SearchEvent::from_internal_message(ident, &filter, None, &mut r.qs_read)?;
            let entries = r.qs_read.search_ext(&event)?;
            let secret = entries.first().and_then(|e| e.get_ava_single_secret(Attribute::OAuth2RsBasicSecret));
            Ok(secret.map(str::to_owned))
        })
        .await;
    Ok(Json(secret?))
}

async fn replace_image(
    State(running): Shared,
    caller: Caller,
    target: Filter<FilterInvalid>,
    upload: Option<Multipart>,
) -> Answer<()> {
    let mut mods = vec![Modify::Purged(Attribute::Image)];
    if let Some(upload) = upload {
        mods.push(Modify::Present(Attribute::Image, Value::Image(image::receive(upload).await?)));
    }
    operation::change(&running, &caller, target, mods).await
}

async fn set_image(s: Shared, c: Caller, Path(id): Path<String>, upload: Multipart) -> Answer<()> {
    replace_image(s, c, Kind::OAuth2.one(&id), Some(upload)).await
}

async fn drop_image(s: Shared, c: Caller, Path(id): Path<String>) -> Answer<()> {
    replace_image(s, c, Kind::OAuth2.one(&id), None).await
}

async fn set_domain_image(s: Shared, c: Caller, upload: Multipart) -> Result<Json<()>, Failure> {
    replace_image(s, c, Kind::Domain.one(&Kind::Domain.fixed_id()), Some(upload)).await
}

async fn drop_domain_image(s: Shared, c: Caller) -> Answer<()> {
    replace_image(s, c, Kind::Domain.one(&Kind::Domain.fixed_id()), None).await
}
