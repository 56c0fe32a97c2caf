// Roles, and what they may do.
#include <algorithm>

#include "cql/parser/grammar.h"

namespace helenus::cql::parser {

using base::Errc;
using base::Error;

namespace {

constexpr std::pair<Keyword, Permission> kPermissions[] = {
    {Keyword::k_create, Permission::create},     {Keyword::k_alter, Permission::alter},
    {Keyword::k_drop, Permission::drop},         {Keyword::k_select, Permission::select},
    {Keyword::k_modify, Permission::modify},     {Keyword::k_authorize, Permission::authorize},
    {Keyword::k_describe, Permission::describe}, {Keyword::k_execute, Permission::execute},
};

}  // namespace

// --------------------------------------------------------------------------------------- names

base::Result<Name> Grammar::role_name() {
  if (!tokens_.at(TokenKind::string)) return name_or_refuse_marker("role");
  return take_name();
}

// The older rule: words keep their case, and keywords are no names.
base::Result<Name> Grammar::user_name() {
  const Token token = tokens_.current();
  if (token.kind == TokenKind::quoted) {
    return Error(Errc::invalid_argument,
                 "Quoted strings are are not supported for user names and USER is deprecated, "
                 "please use ROLE");
  }
  if (token.kind == TokenKind::string) return take_name();
  if (token.kind != TokenKind::word || token.keyword != Keyword::none) {
    return tokens_.no_viable_alternative();
  }
  tokens_.take();
  return Name{.text = std::string(token.text), .position = token.position};
}

// --------------------------------------------------------------------------------------- roles

base::Result<CreateRole> Grammar::create_role() {
  CreateRole result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.role, role_name());
  TRY(result.options, role_options());
  return result;
}

base::Result<AlterRole> Grammar::alter_role() {
  AlterRole result;
  TRY(result.if_exists, if_exists());
  TRY(result.role, role_name());
  TRY(result.options, role_options());
  return result;
}

base::Result<CreateRole> Grammar::create_user() {
  CreateRole result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.role, user_name());
  TRY(result.options, user_options());
  result.options.login = true;
  if (!result.options.superuser) result.options.superuser = false;
  return result;
}

base::Result<AlterRole> Grammar::alter_user() {
  AlterRole result;
  TRY(result.if_exists, if_exists());
  TRY(result.role, user_name());
  TRY(result.options, user_options());
  return result;
}

base::Result<RoleOptions> Grammar::role_options() {
  RoleOptions result;
  if (!tokens_.accept(Keyword::k_with)) return result;
  do {
    TRY_VOID(role_option(result));
  } while (tokens_.accept(Keyword::k_and));
  if (result.password && result.hashed_password) {
    return Error(Errc::invalid_argument,
                 "Options 'password' and 'hashed password' are mutually exclusive");
  }
  return result;
}

base::Result<void> Grammar::role_option(RoleOptions& options) {
  const bool hashed = tokens_.accept(Keyword::k_hashed);
  if (hashed && !tokens_.at(Keyword::k_password)) return tokens_.mismatched("K_PASSWORD");
  if (tokens_.accept(Keyword::k_password)) {
    TRY_VOID(tokens_.expect(TokenKind::equal));
    TRY((hashed ? options.hashed_password : options.password), string_literal());
  } else if (tokens_.accept(Keyword::k_options)) {
    TRY_VOID(tokens_.expect(TokenKind::equal));
    TRY(options.options, property_map());
  } else if (tokens_.accept(Keyword::k_superuser)) {
    TRY(options.superuser, boolean_option());
  } else if (tokens_.accept(Keyword::k_login)) {
    TRY(options.login, boolean_option());
  } else if (tokens_.accept(Keyword::k_access)) {
    TRY(options.access, datacenter_access());
  } else {
    return tokens_.no_viable_alternative();
  }
  return {};
}

base::Result<bool> Grammar::boolean_option() {
  TRY_VOID(tokens_.expect(TokenKind::equal));
  TRY(const Token token, tokens_.expect(TokenKind::boolean));
  return folded(token.text) == "true";
}

base::Result<DatacenterAccess> Grammar::datacenter_access() {
  DatacenterAccess result;
  TRY_VOID(tokens_.expect(Keyword::k_to));
  if (tokens_.accept(Keyword::k_all)) {
    TRY_VOID(tokens_.expect(Keyword::k_datacenters));
    return result;
  }
  TRY_VOID(tokens_.expect(Keyword::k_datacenters));
  TRY_VOID(tokens_.expect(TokenKind::left_brace));
  TRY(result.datacenters, list_of(TokenKind::comma, [this] { return string_literal(); }));
  TRY_VOID(tokens_.expect(TokenKind::right_brace));
  return result;
}

// `WITH [HASHED] PASSWORD 'x' SUPERUSER`, without signs and words between.
base::Result<RoleOptions> Grammar::user_options() {
  RoleOptions result;
  if (tokens_.accept(Keyword::k_with)) {
    const bool hashed = tokens_.accept(Keyword::k_hashed);
    TRY_VOID(tokens_.expect(Keyword::k_password));
    TRY((hashed ? result.hashed_password : result.password), string_literal());
  }
  if (tokens_.accept(Keyword::k_superuser)) {
    result.superuser = true;
  } else if (tokens_.accept(Keyword::k_nosuperuser)) {
    result.superuser = false;
  }
  return result;
}

// ---------------------------------------------------------------------------------- permissions

// A role may be called all, so `GRANT all TO b` is about a role.
bool Grammar::permissions_ahead() {
  if (tokens_.at(Keyword::k_all)) {
    return !tokens_.next_is(Keyword::k_to) && !tokens_.next_is(Keyword::k_from);
  }
  return std::ranges::any_of(kPermissions,
                             [&](const auto& entry) { return tokens_.at(entry.first); });
}

base::Result<Permissions> Grammar::permissions() {
  Permissions result;
  if (tokens_.accept(Keyword::k_all)) {
    tokens_.accept(Keyword::k_permissions);
    for (const auto& entry : kPermissions) result.push_back(entry.second);
    return result;
  }
  TRY(result, list_of(TokenKind::comma, [this] { return permission(); }));
  std::ranges::sort(result);
  const auto repeated = std::ranges::unique(result);
  result.erase(repeated.begin(), repeated.end());
  return result;
}

base::Result<Permission> Grammar::permission() {
  for (const auto& [keyword, permission] : kPermissions) {
    if (!tokens_.accept(keyword)) continue;
    tokens_.accept(Keyword::k_permission);
    return permission;
  }
  return tokens_.no_viable_alternative();
}

base::Result<Resource> Grammar::resource() {
  Resource result;
  // Most of these words may be names of tables: they are words of the language if what they tell of
  // follows.
  const Token behind = tokens_.ahead(1);
  const bool named = is_name(behind) || behind.kind == TokenKind::question_mark;
  if (tokens_.at(Keyword::k_all) && is_name(behind)) return resource_of_all();
  if (accept_keyspace()) {
    result.kind = ResourceKind::keyspace;
    TRY(result.name.name, keyspace_name());
  } else if (tokens_.at(Keyword::k_role) && (named || behind.kind == TokenKind::string)) {
    tokens_.take();
    result.kind = ResourceKind::role;
    TRY(result.name.name, role_name());
  } else if (tokens_.at(Keyword::k_function) && (is_name(behind) || is_function_name(behind))) {
    tokens_.take();
    result.kind = ResourceKind::function;
    TRY(result.name, function_name());
    TRY(result.arguments, argument_types());
  } else if ((tokens_.at(Keyword::k_mbean) || tokens_.at(Keyword::k_mbeans)) &&
             behind.kind == TokenKind::string) {
    const Token word = tokens_.take();
    result.kind = word.keyword == Keyword::k_mbean ? ResourceKind::mbean : ResourceKind::mbeans;
    TRY(result.pattern, string_literal());
  } else {
    accept_table();
    result.kind = ResourceKind::table;
    TRY(result.name, table_name());
  }
  return result;
}

base::Result<Resource> Grammar::resource_of_all() {
  Resource result;
  tokens_.take();
  const auto in_keyspace = [&]() -> Result<void> {
    TRY_VOID(tokens_.expect(Keyword::k_in));
    TRY_VOID(tokens_.expect(Keyword::k_keyspace));
    TRY(result.name.name, keyspace_name());
    return {};
  };
  if (tokens_.accept(Keyword::k_keyspaces)) {
    result.kind = ResourceKind::all_keyspaces;
  } else if (tokens_.accept(Keyword::k_roles)) {
    result.kind = ResourceKind::all_roles;
  } else if (tokens_.accept(Keyword::k_mbeans)) {
    result.kind = ResourceKind::all_mbeans;
  } else if (tokens_.accept(Keyword::k_tables) || tokens_.accept(Keyword::k_columnfamilies)) {
    result.kind = ResourceKind::all_tables_in_keyspace;
    TRY_VOID(in_keyspace());
  } else if (tokens_.accept(Keyword::k_functions)) {
    result.kind = ResourceKind::all_functions;
    if (tokens_.at(Keyword::k_in)) {
      result.kind = ResourceKind::all_functions_in_keyspace;
      TRY_VOID(in_keyspace());
    }
  } else {
    return tokens_.no_viable_alternative();
  }
  return result;
}

// ----------------------------------------------------------------------------------- statements

base::Result<Statement::Node> Grammar::grant() {
  TRY_VOID(tokens_.expect(Keyword::k_grant));
  if (!permissions_ahead()) {
    GrantRole result;
    TRY(result.granted, role_name());
    TRY_VOID(tokens_.expect(Keyword::k_to));
    TRY(result.role, role_name());
    return result;
  }
  GrantPermissions result;
  TRY(result.permissions, permissions());
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY(result.resource, resource());
  TRY_VOID(tokens_.expect(Keyword::k_to));
  TRY(result.role, role_name());
  return result;
}

base::Result<Statement::Node> Grammar::revoke() {
  TRY_VOID(tokens_.expect(Keyword::k_revoke));
  if (!permissions_ahead()) {
    RevokeRole result;
    TRY(result.revoked, role_name());
    TRY_VOID(tokens_.expect(Keyword::k_from));
    TRY(result.role, role_name());
    return result;
  }
  RevokePermissions result;
  TRY(result.permissions, permissions());
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY(result.resource, resource());
  TRY_VOID(tokens_.expect(Keyword::k_from));
  TRY(result.role, role_name());
  return result;
}

base::Result<Statement::Node> Grammar::list() {
  TRY_VOID(tokens_.expect(Keyword::k_list));
  if (tokens_.accept(Keyword::k_users)) return ListUsers{};
  if (tokens_.accept(Keyword::k_roles)) {
    ListRoles result;
    if (tokens_.accept(Keyword::k_of)) {
      TRY(result.role, role_name());
    }
    result.recursive = !tokens_.accept(Keyword::k_norecursive);
    return result;
  }
  ListPermissions result;
  TRY(result.permissions, permissions());
  if (tokens_.accept(Keyword::k_on)) {
    TRY(result.resource, resource());
  }
  if (tokens_.accept(Keyword::k_of)) {
    TRY(result.role, role_name());
  }
  result.recursive = !tokens_.accept(Keyword::k_norecursive);
  return result;
}

}  // namespace helenus::cql::parser
