//go:build long

package sandbox_test

import "testing"

func TestContractCodeInterpreterNode(t *testing.T) { testContract(t, openNode) }
