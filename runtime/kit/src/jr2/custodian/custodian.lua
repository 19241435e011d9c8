-- The filter of the control listener: a request of the Harness carries the Stand-in of the Sandbox
-- token, and leaves with the token. The token is read once, at the start; without it Envoy refuses
-- its config and does not start. No line ever holds the token.

local FOLDER = os.getenv("JR2_CUSTODIAN_VALUES") or "/etc/jr2/custodian/values"
local NAME = "JR2_SANDBOX_TOKEN"
local STAND_IN = "jr2-held-" .. NAME
local SANDBOX = os.getenv("JR2_SANDBOX")
local CREDENTIALS = {
  "authorization", "x-api-key", "x-goog-api-key", "api-key", "proxy-authorization",
}

local function read_value(name)
  local file = io.open(FOLDER .. "/" .. name, "rb")
  if not file then
    error("jr2.custodian cannot read the value of " .. name)
  end
  local value = file:read("*a")
  file:close()
  value = value:gsub("\r?\n$", "", 1)
  if value == "" or value:find("[^\32-\126]") then
    error("jr2.custodian refuses the value of " .. name .. ": it is empty or not printable")
  end
  return value
end

local TOKEN = read_value(NAME)

local function refuse(handle, status, text)
  handle:logInfo("jr2.custodian action=refuse reason=" .. status)
  handle:respond(
    { [":status"] = tostring(status), ["content-type"] = "application/json" },
    '{"error":"' .. text .. '"}'
  )
end

-- The header with the token in the place of the Stand-in; nil when it carries no Stand-in.
local function swapped(header)
  if header == STAND_IN then
    return TOKEN
  end
  local scheme, rest = header:match("^([%w!#$&^_.+-]+) (.*)$")
  if scheme and rest == STAND_IN then
    return scheme .. " " .. TOKEN
  end
  return nil
end

function envoy_on_request(handle)
  local headers = handle:headers()
  for _, name in ipairs(CREDENTIALS) do
    if headers:getNumValues(name) > 1 then
      return refuse(handle, 400, "a credential was sent twice")
    end
  end
  local header = headers:get("authorization")
  if header and header:find(",", 1, true) then
    -- Envoy joins this one header when it comes twice.
    return refuse(handle, 400, "a credential was sent twice")
  end
  local new = header and swapped(header)
  if not new then
    return refuse(handle, 403, "the Orchestrator needs the stand-in of " .. NAME)
  end
  for _, name in ipairs(CREDENTIALS) do
    headers:remove(name)
  end
  headers:add("authorization", new)
  if headers:get(":path") == "/fetch" then
    if not SANDBOX then
      return refuse(handle, 404, "not found")
    end
    headers:replace(":path", "/sandboxes/" .. SANDBOX .. "/fetch")
  end
end
