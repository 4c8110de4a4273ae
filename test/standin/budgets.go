package standin

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

var budgets = Service{
	Name: "Budgets",
	Operations: "CreateBudget, DescribeBudget, UpdateBudget, DeleteBudget, CreateNotification, DescribeNotificationsForBudget, DescribeSubscribersForNotification, " +
		"DeleteNotification, TagResource, UntagResource, ListTagsForResource",
	Why: "forgets a budget's tags and who is told when it is spent",
	answers: map[string]answer{
		"budgets CreateBudget": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			o := body(r)
			budget, _ := o["Budget"].(object)
			name, _ := budget["BudgetName"].(string)
			told, _ := o["NotificationsWithSubscribers"].([]any)
			a.kept[key("budget", name)] = object{"Budget": budget, "told": told, "tags": o["ResourceTags"]}
			reply(w, object{})
		},
		"budgets DescribeBudget": ofBudget(func(_ *AWS, b, _ object) object { return object{"Budget": b["Budget"]} }),
		"budgets UpdateBudget": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			o := body(r)
			budget, _ := o["NewBudget"].(object)
			name, _ := budget["BudgetName"].(string)
			if b, ok := a.kept[key("budget", name)]; ok {
				b["Budget"] = budget
			}
			reply(w, object{})
		},
		"budgets DeleteBudget": ofBudget(func(a *AWS, _, o object) object {
			delete(a.kept, key("budget", o["BudgetName"].(string)))
			return object{}
		}),
		"budgets CreateNotification": ofBudget(func(_ *AWS, b, o object) object {
			b["told"] = append(b["told"].([]any), o)
			return object{}
		}),
		"budgets DescribeNotificationsForBudget": ofBudget(func(_ *AWS, b, _ object) object {
			all := []any{}
			for _, told := range b["told"].([]any) {
				all = append(all, told.(object)["Notification"])
			}
			return object{"Notifications": all}
		}),
		"budgets DescribeSubscribersForNotification": ofBudget(func(_ *AWS, b, o object) object {
			told := b["told"].([]any)
			if i := slices.IndexFunc(told, sameNotification(o)); i >= 0 {
				return object{"Subscribers": told[i].(object)["Subscribers"]}
			}
			return object{"Subscribers": []any{}}
		}),
		"budgets DeleteNotification": ofBudget(func(_ *AWS, b, o object) object {
			b["told"] = slices.DeleteFunc(b["told"].([]any), sameNotification(o))
			return object{}
		}),
		"budgets ListTagsForResource": ofBudget(func(_ *AWS, b, _ object) object { return object{"ResourceTags": b["tags"]} }),
		"budgets TagResource": ofBudget(func(_ *AWS, b, o object) object {
			b["tags"] = o["ResourceTags"]
			return object{}
		}),
		"budgets UntagResource": ofBudget(func(_ *AWS, b, _ object) object {
			b["tags"] = nil
			return object{}
		}),
	},
}

// ofBudget answers what is asked of a budget, by its name or ARN.
func ofBudget(then func(a *AWS, budget, asked object) object) answer {
	return func(a *AWS, w http.ResponseWriter, r *http.Request) {
		o := body(r)
		name, _ := o["BudgetName"].(string)
		if arn, ok := o["ResourceARN"].(string); ok {
			name = arn[strings.LastIndexByte(arn, '/')+1:]
		}
		b, ok := a.kept[key("budget", name)]
		if !ok {
			missing(w, "NotFoundException", "budget")
			return
		}
		if b["told"] == nil {
			b["told"] = []any{}
		}
		reply(w, then(a, b, o))
	}
}

func sameNotification(o object) func(any) bool {
	text := func(o object) string {
		b, _ := json.Marshal(o["Notification"]) // it came as JSON
		return string(b)
	}
	asked := text(o)
	return func(o any) bool { return text(o.(object)) == asked }
}
