package tenant

// Claims are a verified token's claims as a gateway hands them over. An HTTP API turns every value into a string.
type Claims map[string]any

// Caller is the caller that the claims name.
func (c Claims) Caller() Caller {
	return Caller{
		TenantID:      c.text("custom:tenant_id"),
		TenantSlug:    c.text("custom:tenant_slug"),
		UserID:        c.text("custom:user_id"),
		Email:         c.text("email"),
		EmailVerified: c["email_verified"] == true || c["email_verified"] == "true",
		Role:          Role(c.text("custom:role")),
		SessionID:     c.text("origin_jti"),
	}
}

func (c Claims) text(name string) string {
	s, _ := c[name].(string)
	return s
}
