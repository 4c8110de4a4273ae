variable "name" {
  description = "What everything of the platform is called, before the stage."
  type        = string
  default     = "agentplatform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,15}$", var.name)) && !can(regex("aws|amazon|cognito", var.name))
    error_message = "name has 2 to 16 lower-case letters and digits and begins with a letter; a hyphen would let the names of two deployments begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "stage" {
  description = "Deployment stage, such as dev or prod. Stages in one account share nothing."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{0,15}$", var.stage)) && !can(regex("aws|amazon|cognito", var.stage))
    error_message = "stage has 1 to 16 lower-case letters and digits and begins with a letter, for example dev; a hyphen would let the names of two stages begin alike, and aws, amazon and cognito are words that AWS keeps for itself."
  }
}

variable "region" {
  description = "AWS region, such as eu-central-1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region is an AWS region's code, for example eu-central-1."
  }
}

variable "account_id" {
  description = "The AWS account to deploy into. With credentials of another account nothing is done."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id is the 12 digits of the AWS account, in quotes if it begins with 0 (aws sts get-caller-identity shows it)."
  }
}

variable "tags" {
  description = "Tags on everything, beside Platform, Stage and Tier."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for k in keys(var.tags) : length(k) <= 128 && !startswith(lower(k), "aws:") && !contains(["Platform", "Stage", "Tier"], k)])
    error_message = "tags: a key has at most 128 characters, does not begin with aws:, and Platform, Stage and Tier are set already."
  }
}

# ---- network

variable "vpc_cidr" {
  description = "Addresses of the network. Each zone gets a sixteenth for functions and a 256th each for the database and the NAT gateway."
  type        = string
  default     = "10.64.0.0/16"

  validation {
    condition     = can(cidrhost(var.vpc_cidr, 0)) && can(regex("/(1[6-9]|20)$", var.vpc_cidr)) && try(cidrhost(var.vpc_cidr, 0) == split("/", var.vpc_cidr)[0], false)
    error_message = "vpc_cidr is a network of /16 to /20 written by its first address, for example 10.64.0.0/16."
  }
  validation {
    condition     = can(regex("^(10\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|192\\.168\\.|100\\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\\.)", var.vpc_cidr))
    error_message = "vpc_cidr is in a private range: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10."
  }
}

variable "availability_zones" {
  description = "Zones to be in, by name; the database needs two. Empty: the region's zones a and b. AgentCore takes subnets only in zones whose ids its VPC page lists, and which name has which id is each account's own: aws ec2 describe-availability-zones tells both. Moving later replaces the subnets."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.availability_zones) == 0 || length(var.availability_zones) >= 2 && length(var.availability_zones) <= 6 && length(distinct(var.availability_zones)) == length(var.availability_zones)
    error_message = "availability_zones names 2 to 6 different zones, for example [\"eu-central-1a\", \"eu-central-1b\"], or none."
  }
}

variable "nat_gateways" {
  description = "Ways to the internet, where tools, task trackers and MCP servers are: one (a zone's failure cuts it), per-zone, or none. With none, AppSync and Cognito, which have no endpoint here, are out of reach too: nothing can be published; schedules and routines need scheduler and states in interface_endpoints, and the agent runtime ecr.api, ecr.dkr, logs and bedrock-agentcore."
  type        = string
  default     = "one"

  validation {
    condition     = contains(["none", "one", "per-zone"], var.nat_gateways)
    error_message = "nat_gateways is none, one or per-zone."
  }
}

variable "egress_ports" {
  description = "TCP ports on which functions and the runtime may call the internet. A tool server on another port needs its port here."
  type        = list(number)
  default     = [443]

  validation {
    condition     = alltrue([for p in var.egress_ports : p >= 1 && p <= 65535 && floor(p) == p]) && length(distinct(var.egress_ports)) == length(var.egress_ports)
    error_message = "egress_ports are different TCP ports, 1 to 65535."
  }
}

variable "interface_endpoints" {
  description = "AWS services that are called within the network instead of over the NAT gateway. The default is what functions call most: model, keys, functions and secrets. Each costs by the zone and the hour; with nat_gateways = none, add what else is called."
  type        = list(string)
  default     = ["bedrock-runtime", "kms", "lambda", "secretsmanager"]

  validation {
    condition     = alltrue([for s in var.interface_endpoints : can(regex("^[a-z0-9][a-z0-9.-]*$", s))]) && length(distinct(var.interface_endpoints)) == length(var.interface_endpoints)
    error_message = "interface_endpoints are different names of services as in com.amazonaws.<region>.<service>, for example sqs or ecr.api."
  }
  validation {
    condition     = !contains(var.interface_endpoints, "appsync-api")
    error_message = "interface_endpoints: an endpoint for appsync-api serves private APIs only and takes the names of all others in the network; the platform's API is not private, so publishing would end."
  }
  validation {
    condition     = !contains(var.interface_endpoints, "s3")
    error_message = "interface_endpoints: S3 is reached by a gateway endpoint, which is there already and costs nothing."
  }
}

variable "flow_log_days" {
  description = "How long refused connections in the network stay logged, in days that CloudWatch Logs knows; 0 = no flow log."
  type        = number
  default     = 30

  validation {
    condition     = contains([0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.flow_log_days)
    error_message = "flow_log_days is a retention that CloudWatch Logs knows (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, …), or 0 for no flow log."
  }
}

# ---- identity pool

variable "mfa" {
  description = "Second factor at sign-in, by an authenticator app: OFF, OPTIONAL (each user's choice) or ON."
  type        = string
  default     = "OPTIONAL"

  validation {
    condition     = contains(["OFF", "OPTIONAL", "ON"], var.mfa)
    error_message = "mfa is OFF, OPTIONAL or ON."
  }
}

variable "password_min_length" {
  description = "Least length of a password; it has lower and upper case, digits and symbols besides."
  type        = number
  default     = 12

  validation {
    condition     = var.password_min_length >= 8 && var.password_min_length <= 99 && floor(var.password_min_length) == var.password_min_length
    error_message = "password_min_length is 8 to 99."
  }
}

variable "user_pool_tier" {
  description = "Cognito's feature plan: ESSENTIALS, or PLUS, which sees threats and can export sign-ins, failed ones too (LITE cannot put claims into access tokens)."
  type        = string
  default     = "ESSENTIALS"

  validation {
    condition     = contains(["ESSENTIALS", "PLUS"], var.user_pool_tier)
    error_message = "user_pool_tier is ESSENTIALS or PLUS: the plan LITE has no pre-token trigger of version 2, so access tokens would have no tenant."
  }
}

variable "threat_protection" {
  description = "With user_pool_tier = PLUS: AUDIT (risky sign-ins are told) or ENFORCED (and stopped)."
  type        = string
  default     = "AUDIT"

  validation {
    condition     = contains(["AUDIT", "ENFORCED"], var.threat_protection)
    error_message = "threat_protection is AUDIT or ENFORCED."
  }
}

variable "sign_in_domain" {
  description = "First label of the sign-in pages' host, <label>.auth.<region>.amazoncognito.com, unique in the region. Empty: <name>-<stage>-<account_id>."
  type        = string
  default     = ""

  validation {
    condition     = var.sign_in_domain == "" || can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.sign_in_domain)) && !can(regex("aws|amazon|cognito", var.sign_in_domain))
    error_message = "sign_in_domain is one label of at most 63 lower-case letters, digits and hyphens, without the words aws, amazon and cognito."
  }
}

variable "callback_urls" {
  description = "Where the sign-in pages may send a browser back to: the command line tool's loopback addresses, and the console's address once there is one."
  type        = list(string)
  default     = ["http://localhost:1455/callback"]

  validation {
    condition     = length(var.callback_urls) > 0 && alltrue([for u in var.callback_urls : can(regex("^(https://[^#*\\s]+|http://(localhost|127\\.0\\.0\\.1)(:[0-9]+)?(/[^#*\\s]*)?)$", u))])
    error_message = "callback_urls are addresses with https://, or http:// on localhost or 127.0.0.1, without * and #; at least one."
  }
}

variable "logout_urls" {
  description = "Where the sign-in pages may send a browser to that has signed out."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for u in var.logout_urls : can(regex("^(https://[^#*\\s]+|http://(localhost|127\\.0\\.0\\.1)(:[0-9]+)?(/[^#*\\s]*)?)$", u))])
    error_message = "logout_urls are addresses with https://, or http:// on localhost or 127.0.0.1, without * and #."
  }
}

variable "sign_in_triggers" {
  description = "Whether the pool calls the functions pre-token and post-authentication, which the tier app brings. Without them everybody's tokens are without a tenant, and may do nothing; false only while there is no tier app, if the pool should refuse names of functions that are not there yet."
  type        = bool
  default     = true
}

variable "deletion_protection" {
  description = "Whether the identity pool refuses to be deleted."
  type        = bool
  default     = true
}

# ---- names and mail

variable "domain_name" {
  description = "Domain of the deployment, such as agents.example.com; its zone holds the names of API and console. Empty: the names that AWS gives."
  type        = string
  default     = ""

  validation {
    condition     = var.domain_name == "" || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}$", var.domain_name))
    error_message = "domain_name is a domain in lower case, for example agents.example.com, or empty."
  }
}

variable "dns_zone_id" {
  description = "The Route 53 zone that holds domain_name, if there is one. Empty: a zone of that name is made, and must be delegated to."
  type        = string
  default     = ""

  validation {
    condition     = var.dns_zone_id == "" || can(regex("^Z[A-Z0-9]{1,31}$", var.dns_zone_id))
    error_message = "dns_zone_id is a Route 53 zone's id, for example Z0123456789ABCDEFGHIJ, or empty."
  }
}

variable "dns_delegated" {
  description = "Whether the parent domain delegates to the zone that was made (output name_servers). Certificates wait for that: apply once without it, delegate, apply again with it. Of no matter with dns_zone_id."
  type        = bool
  default     = false
}

variable "email_domain" {
  description = "Domain that mail is sent from, with DKIM, SPF and DMARC; records are made if domain_name's zone holds it, else they are the output email_records. Empty: no mail of our own."
  type        = string
  default     = ""

  validation {
    condition     = var.email_domain == "" || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}$", var.email_domain))
    error_message = "email_domain is a domain in lower case, for example example.com, or empty."
  }
}

variable "mail_domain" {
  description = "Domain below email_domain whose mail is received, such as in.example.com: its addresses reach agents. Its MX record is among email_records; SES receives in some regions only. Empty: no mail is received."
  type        = string
  default     = ""

  validation {
    condition     = var.mail_domain == "" || can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,}$", var.mail_domain))
    error_message = "mail_domain is a domain in lower case, for example in.example.com, or empty."
  }
}

variable "invitations_from" {
  description = "Address at email_domain that invitations and password resets come from, once SES has verified the domain. Empty: Cognito's own address, at most 50 mails a day."
  type        = string
  default     = ""

  validation {
    condition     = var.invitations_from == "" || can(regex("^[A-Za-z0-9._+-]+@[a-z0-9.-]+$", var.invitations_from))
    error_message = "invitations_from is a bare address, for example agents@example.com, or empty."
  }
}
